package frame

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
)

// Admission has the parts that the webhook of a workload needs.
type Admission struct {
	*manager.Environment
	// Client reads from the cache.
	Client client.Client
	// Templates validates pod templates.
	Templates podtemplate.Validator
	// InPlace are the options of in-place updates.
	InPlace inplace.Options
}

// Operator completes the operator of one kind of workload: feature has its name, feature gates, schemes, CRDs and
// flags. Flag --<feature>-workers, the cache, the controller and the webhook are added.
//
// The feature gates that plans depend on, of type G, are read once, with the options of in-place updates; workload
// returns the kind for them. Its name, kind and cache do not depend on them.
func Operator[T any, P fastclient.Object[T], S, G any](
	feature manager.Operator, gates func(*manager.Environment, inplace.Options) G, workload func(G) *Workload[T, P, S],
	webhook func(Admission) (manager.Webhook, error),
) manager.Operator {
	var none G
	kind := workload(none)
	flags := feature.Flags
	workers := defaultWorkers
	feature.Flags = func(set *pflag.FlagSet) {
		set.IntVar(&workers, feature.Feature+"-workers", defaultWorkers, "how many "+kind.Kind.Kind+"s are reconciled at a time")
		if flags != nil {
			flags(set)
		}
	}
	feature.Cache = func(env *manager.Environment) cache.Options { return kind.CacheOptions(env.Options.Namespace) }
	feature.Setup = func(ctx context.Context, env *manager.Environment) error {
		can, err := InPlace(env)
		if err != nil {
			return err
		}
		return workload(gates(env, can)).SetUp(ctx, env.Manager, env.Settings(kind.Name, workers))
	}
	feature.Webhooks = func(_ context.Context, env *manager.Environment) (manager.Webhooks, error) {
		a, err := newAdmission(env)
		if err != nil {
			return manager.Webhooks{}, err
		}
		w, err := webhook(a)
		if err != nil {
			return manager.Webhooks{}, err
		}
		return manager.WebhooksOf(w), nil
	}
	return feature
}

func newAdmission(env *manager.Environment) (Admission, error) {
	can, err := InPlace(env)
	if err != nil {
		return Admission{}, err
	}
	cached, err := env.Client("admission")
	if err != nil {
		return Admission{}, fmt.Errorf("make a client for admission: %w", err)
	}
	return Admission{
		Environment: env,
		Client:      cached,
		Templates:   TemplateValidator(env, cached),
		InPlace:     can,
	}, nil
}
