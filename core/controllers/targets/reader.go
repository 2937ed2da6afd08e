package targets

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// patience is how long an answer may take.
	patience = 2 * time.Second
	// retryInterval is how long an error, and an object that only the server has, is remembered.
	retryInterval = 10 * time.Second
	// replicasLife is how long replicas are remembered while the workload's generation stays.
	replicasLife = time.Minute
	// memory is how many answers of each sort are remembered.
	memory = 10_000
)

// Options are what a Reader works with.
type Options struct {
	// Cache is the operator's cache, to which metadata-only informers are added.
	Cache cache.Cache
	// Live asks the server, for objects that the cache does not have yet and for Jobs.
	Live client.Reader
	// Config reaches the server, for scale subresources and discovery.
	Config *rest.Config
	// Mapper knows the kinds that are served.
	Mapper meta.RESTMapper
	// Namespace is the one that the operator is restricted to; empty for none.
	Namespace string
	// Follow says of which kinds owners are read. Nil means all.
	Follow func(schema.GroupKind) bool
	Clock  clock.PassiveClock
}

// Reader reads workloads of any kind. It is safe for concurrent use.
//
// Its errors name the object. meta.IsNoMatchError holds where the cluster does not serve the kind, apierrors.IsForbidden
// where the operator may not get, list or watch it, or get its scale, apierrors.IsNotFound where the object is gone,
// errors.Is(err, ErrNoScale) where the kind has no scale. Any other error means that the server did not answer in time.
type Reader struct {
	options  Options
	scales   scale.ScalesGetter
	served   discovery.ServerResourcesInterface
	kinds    *kinds
	recent   *utilcache.LRUExpireCache // identity to what the server said of an object that the cache does not have
	replicas *lru.Cache                // types.UID to *remembered
	noScale  *utilcache.LRUExpireCache // schema.GroupKind
	asking   singleflight.Group
}

// New makes a Reader.
func New(o Options) (*Reader, error) {
	config := rest.CopyConfig(o.Config)
	config.Timeout = patience
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	scales, err := scale.NewForConfig(config, o.Mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(served))
	if err != nil {
		return nil, fmt.Errorf("make a client of scales: %w", err)
	}
	return &Reader{
		options: o, scales: scales, served: served, kinds: newKinds(o),
		recent:   utilcache.NewLRUExpireCacheWithClock(memory, o.Clock),
		replicas: lru.New(memory),
		noScale:  utilcache.NewLRUExpireCacheWithClock(memory, o.Clock),
	}, nil
}

// ask runs the question once for all who ask the same at the same time, and gives up waiting when patience or ctx ends.
// The question itself goes on until then, whoever has gone.
func ask[T any](ctx context.Context, group *singleflight.Group, key string, question func(context.Context) (T, error)) (T, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers := group.DoChan(key, func() (any, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return question(bounded)
	})
	var none T
	select {
	case answer := <-answers:
		if answer.Err != nil {
			return none, answer.Err
		}
		return answer.Val.(T), nil
	case <-waiting.Done():
		return none, fmt.Errorf("wait for the API server: %w", waiting.Err())
	}
}
