package remote

const hasUmask = false

func setUmask(int) (before int) { return 0 }
