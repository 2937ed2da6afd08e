package features

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func FuzzParse(f *testing.F) {
	f.Add("A=true,B=false", "SidecarSet")
	f.Add("AllAlpha=true, AllBeta=false", "Pod,")
	f.Add("=,A=,=true,A", "")
	gates := []Gate{{Name: "A"}, {Name: "B", Default: true, Needs: "A"}, {Name: "C", ImpliedBy: []Name{"B"}}}
	f.Fuzz(func(t *testing.T, flag, kinds string) {
		set, _, err := Parse(Source{Flag: flag, Getenv: func(string) string { return kinds }, Gates: gates})
		if err == nil {
			assert.False(t, set.Enabled("B") && !set.Enabled("A"), "a feature gate is on without the one that it needs")
		}
	})
}
