package cli

import "github.com/spf13/pflag"

// AddOutput adds the flag for output that programs read.
func AddOutput(set *pflag.FlagSet, output *string) {
	set.StringVarP(output, "output", "o", "", "output format: json, or omit it for text")
}

// CheckOutput refuses formats that no command has.
func CheckOutput(output string) error {
	if output != "" && output != "json" {
		return MisuseErrorf("unsupported -o %q: use json or omit it", output)
	}
	return nil
}
