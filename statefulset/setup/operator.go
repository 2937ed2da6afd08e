package setup

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/frame/engine"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/admission"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// settings are the operator's own flags.
type settings struct {
	workers      int
	unkeyedFirst bool
}

// Operator is the StatefulSet operator.
func Operator() manager.Operator {
	s := &settings{}
	return manager.Operator{
		Feature: "statefulset",
		Gates: []features.Name{
			features.StatefulSetAutoDeletePVC, features.StatefulSetStartOrdinal, features.PodIndexLabel,
			features.StatefulSetAutoResizePVCGate, features.KruiseDaemon, features.PreDownloadImageForInPlaceUpdate,
			features.InPlaceUpdateEnvFromMetadata, features.InPlaceWorkloadVerticalScaling,
			features.PreparingUpdateAsUpdate, features.ResourcesDeletionProtection, features.EnableExternalCerts,
		},
		Schemes:  []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:     []string{"statefulsets.apps.kruise.io"},
		Flags:    s.add,
		Cache:    func(env *manager.Environment) cache.Options { return Cache(env.Options.Namespace) },
		Webhooks: webhooks,
		Setup:    s.setup,
	}
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.IntVar(&s.workers, "statefulset-workers", DefaultWorkers, "how many StatefulSets are reconciled at a time")
	flags.BoolVar(&s.unkeyedFirst, "order-priority-unkeyed-first", false,
		"update pods with none of the orderPriority keys first instead of last")
}

func (s *settings) setup(ctx context.Context, env *manager.Environment) error {
	gates, err := gatesOf(env)
	if err != nil {
		return err
	}
	gates.UnkeyedFirst = s.unkeyedFirst
	return Controller(ctx, env.Manager, Options{Settings: env.Settings(statefulset.ControllerName, s.workers), Gates: gates})
}

// gatesOf reads the gates of plans once.
func gatesOf(env *manager.Environment) (plan.Gates, error) {
	inPlace, err := engine.InPlace(env)
	g := env.Options.Gates
	return plan.Gates{
		StartOrdinal:            g.Enabled(features.StatefulSetStartOrdinal),
		PodIndexLabel:           g.Enabled(features.PodIndexLabel),
		AutoDeletePVC:           g.Enabled(features.StatefulSetAutoDeletePVC),
		AutoResizePVC:           g.Enabled(features.StatefulSetAutoResizePVCGate),
		PreDownload:             g.Enabled(features.PreDownloadImageForInPlaceUpdate),
		EnvFromMetadata:         inPlace.EnvFromMetadata,
		Resize:                  inPlace.Resize,
		PreparingUpdateAsUpdate: g.Enabled(features.PreparingUpdateAsUpdate),
	}, err
}

func webhooks(_ context.Context, env *manager.Environment) (manager.Webhooks, error) {
	inPlace, err := engine.InPlace(env)
	if err != nil {
		return manager.Webhooks{}, err
	}
	asker, err := env.Client("admission")
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a client for admission: %w", err)
	}
	live, err := env.APIReader("admission")
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a reader for admission: %w", err)
	}
	g := env.Options.Gates
	return manager.WebhooksOf(admission.Webhook{Reader: admission.Reader{
		Judge:   engine.Judge(env, asker),
		Classes: live,
		InPlace: inPlace,
		Gates: admission.Gates{
			StartOrdinal:       g.Enabled(features.StatefulSetStartOrdinal),
			AutoDeletePVC:      g.Enabled(features.StatefulSetAutoDeletePVC),
			AutoResizePVC:      g.Enabled(features.StatefulSetAutoResizePVCGate),
			PreDownload:        g.Enabled(features.PreDownloadImageForInPlaceUpdate),
			DeletionProtection: g.Enabled(features.ResourcesDeletionProtection),
		},
	}}), nil
}
