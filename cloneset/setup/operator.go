package setup

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/pods/inplace"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/admission"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
	"github.com/flotilla-project/flotilla/cloneset/internal/featuregates"
)

// settings are the operator's own flags.
type settings struct{ excludePreparingDelete, unkeyedFirst bool }

// Operator is the CloneSet operator.
func Operator() manager.Operator {
	s := &settings{}
	return frame.Operator(manager.Operator{
		Feature:      "cloneset",
		FeatureGates: featuregates.All(),
		Schemes:      []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:         []string{"clonesets.apps.kruise.io"},
		Flags:        s.add,
	}, s.featureGates, cloneset.Workload, webhook)
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.BoolVar(&s.excludePreparingDelete, "cloneset-scaling-exclude-preparing-delete", false,
		"Exclude pods in lifecycle state PreparingDelete from the replicas of all CloneSets.")
	flags.BoolVar(&s.unkeyedFirst, "order-priority-unkeyed-first", false,
		"Update pods without an orderPriority label first instead of last.")
}

func (s *settings) featureGates(env *manager.Environment, can inplace.Options) plan.FeatureGates {
	g := cloneset.FeatureGates(env.Options.FeatureGates, can)
	g.UnkeyedFirst = s.unkeyedFirst
	g.ExcludePreparingDelete = s.excludePreparingDelete
	return g
}

func webhook(a frame.Admission) (manager.Webhook, error) {
	g, can := a.Options.FeatureGates, a.InPlace
	can.CompareClaims = g.Enabled(featuregates.RecreatePodWhenChangeVCTInCloneSetGate)
	return admission.NewWebhook(admission.Reader{
		Pods:      admission.CachedPods{Cache: a.Client, Server: a.Manager.GetAPIReader()},
		Templates: a.Templates,
		InPlace:   can,
		Forecast:  g.Enabled(features.UpdateWarnings),
	}, g.Enabled(features.ResourcesDeletionProtection)), nil
}
