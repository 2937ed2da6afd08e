package setup

import (
	"strings"

	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// versioned is a list of kinds of workloads, in small letters.
type versioned struct {
	names []string
	kinds subsets.Versioned
}

// String implements pflag.Value.
func (v *versioned) String() string { return strings.Join(v.names, ",") }

// Type implements pflag.Value.
func (v *versioned) Type() string { return "kinds" }

// Set implements pflag.Value.
func (v *versioned) Set(text string) (err error) {
	v.names = strings.Split(text, ",")
	v.kinds, err = workloads.ParseVersioned(v.names)
	return err
}
