package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which punnet this is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			if a.json {
				a.printJSON(v)
				return nil
			}
			fmt.Fprintf(a.stdout, "punnet %s", v.Version)
			if v.Revision != "" {
				fmt.Fprintf(a.stdout, " (%s)", v.Revision)
			}
			fmt.Fprintf(a.stdout, " %s %s\n", v.Go, v.Platform)
			return nil
		},
	}
}

type versionJSON struct {
	SchemaVersion int    `json:"schemaVersion"`
	Version       string `json:"version"`
	Revision      string `json:"revision,omitempty"`
	Modified      bool   `json:"modified,omitempty"`
	Go            string `json:"go"`
	Platform      string `json:"platform"`
}

// thisVersion reads what the Go tool recorded when it built this binary.
func thisVersion() versionJSON {
	v := versionJSON{SchemaVersion: schemaVersion, Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
