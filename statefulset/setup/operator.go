package setup

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/pods/inplace"

	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/admission"
	"github.com/flotilla-project/flotilla/statefulset/internal/featuregates"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// settings are the operator's own flags.
type settings struct{ unkeyedFirst bool }

// Operator is the StatefulSet operator.
func Operator() manager.Operator {
	s := &settings{}
	return frame.Operator(manager.Operator{
		Feature:      "statefulset",
		FeatureGates: featuregates.All(),
		Schemes:      []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:         []string{"statefulsets.apps.kruise.io"},
		Flags: func(flags *pflag.FlagSet) {
			flags.BoolVar(&s.unkeyedFirst, "order-priority-unkeyed-first", false,
				"update pods without any of the orderPriority keys first instead of last")
		},
	}, s.featureGates, statefulset.Workload, webhook)
}

func (s *settings) featureGates(env *manager.Environment, can inplace.Options) plan.FeatureGates {
	g := statefulset.FeatureGates(env.Options.FeatureGates, can)
	g.UnkeyedFirst = s.unkeyedFirst
	return g
}

func webhook(a frame.Admission) (manager.Webhook, error) {
	live, err := a.APIReader("admission")
	if err != nil {
		return nil, fmt.Errorf("create a reader for admission: %w", err)
	}
	g := a.Options.FeatureGates
	return admission.NewWebhook(admission.Reader{
		Templates: a.Templates,
		Classes:   live,
		InPlace:   a.InPlace,
		FeatureGates: admission.FeatureGates{
			StartOrdinal:       g.Enabled(featuregates.StatefulSetStartOrdinal),
			AutoDeletePVC:      g.Enabled(featuregates.StatefulSetAutoDeletePVC),
			AutoResizePVC:      g.Enabled(featuregates.StatefulSetAutoResizePVCGate),
			PreDownload:        g.Enabled(features.PreDownloadImageForInPlaceUpdate),
			DeletionProtection: g.Enabled(features.ResourcesDeletionProtection),
			Forecast:           g.Enabled(features.UpdateWarnings),
		},
	}), nil
}
