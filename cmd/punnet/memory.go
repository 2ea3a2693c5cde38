package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/atomicfile"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/transport"
)

// What the last push left on a target is remembered, so that the next one asks before it sends. It
// is a hint: forgotten or wrong, it costs a round trip or some bytes and nothing else. Hence no lock,
// and no error is told.

// maxRemembered is how many bundles are remembered for one target, and maxMemoryBytes what such a
// file may have.
const (
	maxRemembered  = 1000
	maxMemoryBytes = 128 << 10
)

type memoryJSON struct {
	Version int             `json:"version"`
	Target  string          `json:"target"`
	Bundles []bundle.Digest `json:"bundles"`
}

// memoryPath returns where it is remembered what a target has.
func (a *app) memoryPath(t transport.Target) (string, error) {
	state, err := profile.Locate([]string{"$XDG_STATE_HOME/punnet/targets", "$HOME/.local/state/punnet/targets"}, a.env)
	if err != nil {
		return "", err
	}
	// One file for each way to name an account and its cache.
	key := fmt.Sprintf("%s\n%s\n%d\n%s\n%s", t, a.ssh.user, a.ssh.port, a.ssh.configFile, a.profile.Cache)
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(state, hex.EncodeToString(sum[:16])+".json"), nil
}

// remember returns the bundles that the last push left on a target.
func (a *app) remember(t transport.Target) map[bundle.Digest]bool {
	known := map[bundle.Digest]bool{}
	path, err := a.memoryPath(t)
	if err != nil {
		return known
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxMemoryBytes {
		return known
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return known
	}
	var m memoryJSON
	if err := json.Unmarshal(data, &m); err != nil || m.Version != 1 {
		return known
	}
	for _, d := range m.Bundles {
		known[d] = true
	}
	return known
}

// memorize adds bundles to those that are remembered to be on a target.
func (a *app) memorize(t transport.Target, there []bundle.Digest) {
	known := a.remember(t)
	m := memoryJSON{Version: 1, Target: t.String(), Bundles: there}
	fresh := false
	for _, d := range there {
		fresh = fresh || !known[d]
		delete(known, d)
	}
	if !fresh {
		return
	}
	for d := range known {
		m.Bundles = append(m.Bundles, d)
	}
	m.Bundles = m.Bundles[:min(len(m.Bundles), maxRemembered)]
	path, err := a.memoryPath(t)
	if err != nil {
		return
	}
	data, err := json.Marshal(m)
	if err == nil {
		err = atomicfile.Write(path, data)
	}
	if err != nil {
		a.log.Debug("what is on the target could not be remembered", "error", err)
	}
}
