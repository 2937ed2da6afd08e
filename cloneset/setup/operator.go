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

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/admission"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// settings are the operator's own flags.
type settings struct {
	workers                int
	excludePreparingDelete bool
	unkeyedFirst           bool
}

// Operator is the CloneSet operator.
func Operator() manager.Operator {
	s := &settings{}
	return manager.Operator{
		Feature: "cloneset",
		Gates: []features.Name{
			features.KruiseDaemon, features.InPlaceUpdateEnvFromMetadata, features.InPlaceWorkloadVerticalScaling,
			features.CloneSetShortHash, features.CloneSetPartitionRollback, features.PreparingUpdateAsUpdate,
			features.RecreatePodWhenChangeVCTInCloneSetGate, features.ResourcesDeletionProtection, features.PreDownloadImageForInPlaceUpdate, features.EnableExternalCerts,
		},
		Schemes:  []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		CRDs:     []string{"clonesets.apps.kruise.io"},
		Flags:    s.add,
		Cache:    cacheOptions,
		Webhooks: webhooks,
		Setup:    s.setup,
	}
}

func (s *settings) add(flags *pflag.FlagSet) {
	flags.IntVar(&s.workers, "cloneset-workers", DefaultWorkers, "how many CloneSets are reconciled at a time")
	flags.BoolVar(&s.excludePreparingDelete, "cloneset-scaling-exclude-preparing-delete", false,
		"leave pods in PreparingDelete out of the count of replicas, as if every CloneSet asked for it")
	flags.BoolVar(&s.unkeyedFirst, "order-priority-unkeyed-first", false,
		"update pods with none of the orderPriority keys first instead of last")
}

func cacheOptions(env *manager.Environment) cache.Options {
	options, err := Cache(env.Options.Namespace)
	if err != nil {
		panic(err) // the selectors are constants
	}
	return options
}

func (s *settings) setup(ctx context.Context, env *manager.Environment) error {
	gates, err := gatesOf(env)
	if err != nil {
		return err
	}
	gates.ExcludePreparingDelete, gates.UnkeyedFirst = s.excludePreparingDelete, s.unkeyedFirst
	return Controller(ctx, env.Manager, Options{Settings: env.Settings(cloneset.ControllerName, s.workers), Gates: gates})
}

// gatesOf reads the gates of plans once.
func gatesOf(env *manager.Environment) (plan.Gates, error) {
	inPlace, err := engine.InPlace(env)
	g := env.Options.Gates
	return plan.Gates{
		PartitionRollback:       g.Enabled(features.CloneSetPartitionRollback),
		ShortHash:               g.Enabled(features.CloneSetShortHash),
		PreparingUpdateAsUpdate: g.Enabled(features.PreparingUpdateAsUpdate),
		RecreateOnClaimChange:   g.Enabled(features.RecreatePodWhenChangeVCTInCloneSetGate),
		PreDownload:             g.Enabled(features.PreDownloadImageForInPlaceUpdate),
		EnvFromMetadata:         inPlace.EnvFromMetadata,
		Resize:                  inPlace.Resize,
	}, err
}

func webhooks(_ context.Context, env *manager.Environment) (manager.Webhooks, error) {
	inPlace, err := engine.InPlace(env)
	if err != nil {
		return manager.Webhooks{}, err
	}
	reader, err := env.Client("admission")
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a client for admission: %w", err)
	}
	return manager.WebhooksOf(admission.Webhook{
		Reader: admission.Reader{
			Pods:      admission.CachedPods{Cache: reader, Server: env.Manager.GetAPIReader()},
			Templates: engine.Judge(env, reader),
			InPlace:   inPlace,
		},
		DeletionProtection: env.Options.Gates.Enabled(features.ResourcesDeletionProtection),
	}), nil
}
