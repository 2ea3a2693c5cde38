# used COPY: its last use in seconds since 1970, or - where no program tells.
used() {
  t=$(stat -c %Y "$1" 2>/dev/null || stat -f %m "$1" 2>/dev/null || date -r "$1" +%s 2>/dev/null)
  case $t in ""|*[!""0-9]*) t=- ;; esac
  echo $t
}

# count: files and bytes in $d.
count() {
  find "$d" -type f -exec ls -ldn {} + 2>/dev/null | {
    i=0 b=0
    while read -r m x x x z x; do
      case $m in -*) i=$((i+1)) ;; *) continue ;; esac
      case $z in ""|*[!""0-9]*) ;; *) b=$((b+z)) ;; esac
    done
    echo $i $b
  }
}
