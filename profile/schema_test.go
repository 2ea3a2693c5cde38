package profile

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
)

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("profile.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("profile.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate checks a file as an editor would.
func validate(t testing.TB, s *jsonschema.Schema, file string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(file), &v); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func TestSchemaAcceptsTheBuiltinProfiles(t *testing.T) {
	s := compiled(t)
	for _, name := range Builtin() {
		data, err := builtin.ReadFile(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, string(data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPublishedSchemaIsTheOneBuiltIn(t *testing.T) {
	data, err := os.ReadFile("../docs/profile.schema.json")
	if err != nil || !bytes.Equal(data, Schema()) {
		t.Errorf("docs/profile.schema.json is not profile/profile.schema.json: %v", err)
	}
}

// keys returns the keys of a YAML struct, and of the structs in it, as paths.
func keys(typ reflect.Type, prefix string) []string {
	var out []string
	for f := range typ.Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		out = append(out, prefix+key)
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			out = append(out, keys(inner, prefix+key+".")...)
		}
	}
	return out
}

// schemaKeys returns the same of a schema.
func schemaKeys(all, s map[string]any, prefix string) []string {
	if ref, ok := s["$ref"].(string); ok {
		s = all["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if items, ok := s["items"].(map[string]any); ok {
		return schemaKeys(all, items, prefix)
	}
	var out []string
	properties, _ := s["properties"].(map[string]any)
	for key, inner := range properties {
		out = append(out, prefix+key)
		if key != "severities" { // whose keys are the codes
			out = append(out, schemaKeys(all, inner.(map[string]any), prefix+key+".")...)
		}
	}
	return out
}

func TestSchemaHasTheKeysThatAreRead(t *testing.T) {
	var all map[string]any
	if err := json.Unmarshal(Schema(), &all); err != nil {
		t.Fatal(err)
	}
	read, described := keys(reflect.TypeFor[document](), ""), schemaKeys(all, all, "")
	slices.Sort(read)
	slices.Sort(described)
	if !slices.Equal(read, described) {
		t.Errorf("read are\n%q, described\n%q", read, described)
	}
	severities := all["properties"].(map[string]any)["severities"].(map[string]any)["properties"].(map[string]any)
	codes := make(map[string]bool)
	for _, c := range skill.Codes() {
		codes[string(c.Code)] = c.Fatal
	}
	for _, c := range discovery.Codes() {
		codes[string(c.Code)] = c.Fatal
	}
	for code, fatal := range codes {
		want := map[string]any{"$ref": "#/$defs/severity"}
		if fatal {
			want = map[string]any{"const": "error"}
		}
		if !reflect.DeepEqual(severities[code], want) {
			t.Errorf("%s is described as %v, want %v", code, severities[code], want)
		}
	}
	if len(severities) != len(codes) {
		t.Errorf("%d codes are described, and there are %d", len(severities), len(codes))
	}
}
