//go:build unix

package transport

import (
	"os"
	"testing"
)

func TestSetEnvAndSendEnvReachEverySession(t *testing.T) {
	noLeaks(t)
	d := newSSHD(t, tempDir(t), "AcceptEnv PUNNET_*")
	defer d.stop()
	t.Setenv("PUNNET_SENT", "from here")
	t.Setenv("PUNNET_BOTH", "sent")
	conf, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.config, string(conf)+"  SendEnv PUNNET_* NOT_HERE\n  SetEnv PUNNET_SET=\"a value\" PUNNET_BOTH=set REFUSED=x\n")
	m := startUserMaster(t, d)
	control := d.options()
	control.ConfigFile = m.config
	for way, o := range map[Way]Options{WayNative: d.options(), WaySystem: d.system(t), WayControl: control} {
		c := wantWay(t, dial(t, d.alias, o), way)
		for range 3 { // the first two over a master take channels that were opened before
			out, _, err := run(t.Context(), c, `echo "$PUNNET_SENT,$PUNNET_SET,$PUNNET_BOTH,$REFUSED"`, "")
			if err != nil || out != "from here,a value,set,\n" {
				t.Errorf("%s: %q, %v", way, out, err)
			}
		}
		if _, err := view(t, c).RealPath("."); err != nil {
			t.Errorf("%s: files: %v", way, err)
		}
	}
}
