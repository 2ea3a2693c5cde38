package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"gopkg.in/yaml.v3"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/profile"
)

// config is the user's configuration file. A flag or an environment variable goes before it.
type config struct {
	Version int    `yaml:"version"`
	Profile string `yaml:"profile"`
}

// maxConfigBytes bounds the configuration file: far more than its keys need, and little enough that
// no repetition of keys makes reading it costly.
const maxConfigBytes = 4 << 10

// configPath returns where the configuration file would be, "" where there is no place for one.
func (a *app) configPath() string {
	path, err := profile.Locate([]string{"$XDG_CONFIG_HOME/punnet/config.yaml", "$HOME/.config/punnet/config.yaml"}, a.env)
	if err != nil {
		return ""
	}
	return path
}

// loadConfig reads the configuration file. One that is not there says nothing.
func loadConfig(path string) (config, error) {
	var c config
	info, err := os.Stat(path)
	if path == "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("configuration: %w", err)
	}
	if !info.Mode().IsRegular() { // opening anything else could wait for ever
		return c, fmt.Errorf("configuration %s: not a file", display.Quote(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	switch {
	case err != nil:
		return c, fmt.Errorf("configuration: %w", err)
	case len(data) > maxConfigBytes:
		return c, fmt.Errorf("configuration %s: larger than %d KiB", display.Quote(path), maxConfigBytes>>10)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("configuration %s: %s", display.Quote(path), profile.PlainYAMLError(err))
	}
	if c.Version != 1 {
		return c, fmt.Errorf("configuration %s: version is %d, and this punnet reads version 1", display.Quote(path), c.Version)
	}
	return c, nil
}
