package skill_test

import (
	"fmt"

	"github.com/punnet/punnet/skill"
)

func ExampleParse() {
	file := []byte("---\nname: release\ndescription: Use when: a release is due\n---\nTag it.\n")
	s, problems := skill.Parse(file, "release-notes")

	headlesscode := skill.Severities{skill.NameDirectory: skill.Error}
	for _, p := range problems {
		fmt.Printf("%s: %v\n", headlesscode.Of(p.Code), p)
	}
	fmt.Println(s.Name, "loads:", headlesscode.Worst(problems) < skill.Error)
	// Output:
	// error: line 2: the name is "release" and the directory "release-notes"
	// warning: line 3: the value of "description" was read as if it stood in quotes
	// release loads: false
}
