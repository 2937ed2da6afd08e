package daemonset_test

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/testing/docs"
	"github.com/flotilla-project/flotilla/core/workloads/failures"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
	"github.com/flotilla-project/flotilla/daemonset/setup"
)

// Users look up in the feature's page, and in those that workloads share, what conditions, events and the command line say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page := docs.Feature(t, "daemonset", "concepts/in-place-updates", "reference/conditions")
	page.Names(frame.Reasons, failures.Reasons, plan.Reasons, v1beta1.ConditionTypes, v1beta1.Reasons)

	operator := setup.Operator()
	for _, featureGate := range operator.FeatureGates {
		page.Names([]string{string(featureGate.Name)})
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	operator.Flags(flags)
	flags.VisitAll(func(f *pflag.Flag) { page.Names([]string{"--" + f.Name}) })
}
