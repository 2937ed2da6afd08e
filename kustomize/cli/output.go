package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Output is the format of the output for programs. The empty one is text for people.
type Output string

// The formats.
const (
	JSON Output = "json"
	YAML Output = "yaml"
)

// AddTo adds the flag that chooses the format.
func (o *Output) AddTo(set *pflag.FlagSet) {
	set.VarP(o, "output", "o", "output format: json or yaml, or omit it for text")
}

// String returns the name of the format.
func (o *Output) String() string { return string(*o) }

// Type is the type of the flag's value in the help of a command.
func (o *Output) Type() string { return "string" }

// Set chooses a format by its name, and refuses one that does not exist.
func (o *Output) Set(name string) error {
	switch format := Output(name); format {
	case "", JSON, YAML:
		*o = format
		return nil
	}
	return MisuseErrorf("use json or yaml, or omit it for text")
}

// Print writes a value as one document. Fields have their names in JSON in each format.
func (o Output) Print(out io.Writer, value any) error {
	if o == YAML {
		text, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(text)
		}
		if err != nil {
			return fmt.Errorf("print YAML: %w", err)
		}
		return nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
