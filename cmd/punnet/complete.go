package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// maxCompleted is how many arguments are completed where a verb takes any number.
const maxCompleted = 1000

// completeSkills completes SKILL arguments, of which there may be max, that come after those before
// them: the names in this machine's catalog, and paths where one is begun. A TARGET is not completed:
// what the ssh configuration lists is for ssh's own completion.
func (a *app) completeSkills(before, max int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) < before || len(args) >= before+max {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if isPath(toComplete) || strings.HasPrefix(toComplete, ".") || strings.HasPrefix(toComplete, "~") {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		// The flags of the command that is being completed are known only by now.
		if err := a.chooseProfile(); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		c, err := a.names(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for _, s := range c.Skills {
			if strings.HasPrefix(s.Name, toComplete) && !slices.Contains(args[before:], s.Name) && plainWord(s.Name) && !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// plainWord reports whether a name means itself in every shell. Names are the authors' and may hold
// anything where a profile lets them.
func plainWord(name string) bool {
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && name != "" && name[0] != '-'
}
