package cloneset_test

import (
	"os"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/cloneset/setup"
)

// Users look up in the feature's page what conditions, events and the command line say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/cloneset.md")
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
		{"plan/*.go", `Wait\("(\w+)"`},
		{"plan/*.go", `\b(?:event|wait)\w+ += "(\w+)"`},
		{"../../../core/workloads/conditions/conditions.go", `\tReason\w+ += "(\w+)"`},
		{"../../../core/workloads/conditions/conditions.go", `s\.Reason, s\.Message = "(\w+)"`},
		{"../../../core/plan/action/refusals.go", `\tWait\w+ += "(\w+)"`},
		{"../../../core/workloads/podupdate/*.go", `Wait\("(\w+)"`},
		{"../../../core/workloads/podupdate/*.go", `\t(?:Event|Wait)\w+ += "(\w+)"`},
		{"../../../core/workloads/predownload/predownload.go", `\tEvent\w+ += "(\w+)"`},
		{"plan/status.go", `(?:Reason: |s\.Reason, s\.Message = )"(\w+)"`},
		{"../../api/v1beta1/cloneset_conditions.go", `= "(\w+)"`},
		{"../../../core/pods/inplace/refresh.go", `Reason\w+ += "(\w+)"`},
	} {
		for _, word := range testenv.Words(t, words.files, words.pattern) {
			explained(word)
		}
	}
}
