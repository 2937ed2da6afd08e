package setup

import (
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/pods/inplace"

	"github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/admission"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
	"github.com/flotilla-project/flotilla/daemonset/internal/featuregates"
)

// settings are the operator's own flags.
type settings struct{ byScheduler, tellAutoscaler bool }

// Operator is the DaemonSet operator.
func Operator() manager.Operator {
	s := &settings{}
	return frame.Operator(manager.Operator{
		Feature:      "daemonset",
		FeatureGates: featuregates.All(),
		Schemes:      []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:         []string{"daemonsets.apps.kruise.io"},
		Flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&s.byScheduler, "assign-pods-by-scheduler", true,
				"let the default scheduler bind pods of DaemonSets to nodes; if false, the operator sets spec.nodeName")
			flags.BoolVar(&s.tellAutoscaler, "cluster-autoscaler-daemonset-pods", false,
				"annotate new pods so that the cluster autoscaler treats them as pods of a DaemonSet")
		},
	}, s.featureGates, daemonset.Workload, webhook)
}

func (s *settings) featureGates(env *manager.Environment, can inplace.Options) plan.FeatureGates {
	g := daemonset.FeatureGates(env.Options.FeatureGates, can)
	g.AssignDirectly = !s.byScheduler
	g.AutoscalerAnnotation = s.tellAutoscaler
	return g
}

func webhook(a frame.Admission) (manager.Webhook, error) {
	g := a.Options.FeatureGates
	return admission.NewWebhook(admission.Rules{
		Templates: a.Templates,
		Nodes:     a.Client,
		InPlace:   a.InPlace,
		FeatureGates: admission.FeatureGates{
			PreDownload:        g.Enabled(featuregates.PreDownloadImageForDaemonSetUpdate),
			DeletionProtection: g.Enabled(features.ResourcesDeletionProtection),
			Forecast:           g.Enabled(features.UpdateWarnings),
		},
	}), nil
}
