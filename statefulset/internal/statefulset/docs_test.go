package statefulset_test

import (
	"os"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/statefulset/setup"
)

// Users look up in the feature's page what conditions, events and the command line say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/statefulset.md")
	require.NoError(t, err)
	explained := func(word string) { assert.Contains(t, string(page), "`"+word+"`") }

	operator := setup.Operator()
	for _, gate := range operator.Gates {
		explained(string(gate))
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	operator.Flags(flags)
	flags.VisitAll(func(f *pflag.Flag) { explained("--" + f.Name) })
	for _, words := range []struct{ files, pattern string }{
		{"plan/[a-z]*[^t].go", `\b(?:event|wait|reason)[A-Z]\w* += "(\w+)"`},
		{"plan/conditions.go", `Reason(?:: |, s\.Message = | = .*, )"(\w+)"`},
		{"../../../core/workloads/conditions/conditions.go", `\tReason\w+ += "(\w+)"`},
		{"../../../core/workloads/conditions/conditions.go", `s\.Reason, s\.Message = "(\w+)"`},
		{"../../../core/plan/action/refusals.go", `\tWait\w+ += "(\w+)"`},
		{"../../../core/workloads/podupdate/*.go", `\b(?:Event|Wait)[A-Z]\w* += "(\w+)"`},
		{"../../../core/workloads/predownload/*.go", `\bEvent\w+ += "(\w+)"`},
		{"../../api/v1beta1/statefulset_conditions.go", `= "(\w+)"`},
		{"../../../core/pods/inplace/refresh.go", `Reason\w+ += "(\w+)"`},
	} {
		for _, word := range testenv.Words(t, words.files, words.pattern) {
			explained(word)
		}
	}
}
