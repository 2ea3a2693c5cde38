package profile

import (
	_ "embed"
	"slices"
)

//go:embed profile.schema.json
var schema []byte

// Schema returns the JSON Schema of a profile's file, for editors. It accepts what Parse does.
func Schema() []byte { return slices.Clone(schema) }
