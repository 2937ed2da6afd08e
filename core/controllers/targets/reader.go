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
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// answerTimeout is how long an answer may take.
	answerTimeout = 2 * time.Second
	// leftInterval is how long a kind is not asked for if its scales are enough.
	leftInterval = time.Hour
	// youngTTL is how long an object is cached that only the server has: it may go before the cache has seen it.
	youngTTL = time.Second
	// replicasTTL is how long replicas are cached while the workload's generation stays the same.
	replicasTTL = time.Minute
	// cacheSize is how many answers of each sort are cached.
	cacheSize = 10_000
)

// Options are the settings of a Reader.
type Options struct {
	// Cache is the operator's cache, to which metadata-only informers are added.
	Cache cache.Cache
	// Live reads from the server: objects that the cache does not have yet, and Jobs.
	Live client.Reader
	// Config is the client configuration for scale subresources and discovery.
	Config *rest.Config
	// Mapper maps the kinds that are served.
	Mapper meta.RESTMapper
	// Namespace is the namespace that the operator is restricted to; empty for none.
	Namespace string
	// Follow reports whether owners of a kind are read. Nil means all.
	Follow func(schema.GroupKind) bool
	// Republishes reports whether workloads of a kind may publish another selector without an edit. Of these, replicas are
	// asked for again when the cache shows another version of the workload. Nil means none.
	Republishes func(schema.GroupKind) bool
	// RepublishPause is the shortest time between two such questions about one workload.
	RepublishPause time.Duration
	// ByScale finds objects of a kind that may not be listed and watched by their scale subresources. These show only the
	// names, UIDs and replicas of the objects: neither owners nor that they are being deleted.
	ByScale bool
	Clock   clock.PassiveClock
}

// Reader reads workloads of any kind. It is safe for concurrent use.
//
// Its errors name the object. meta.IsNoMatchError holds where the cluster does not serve the kind, apierrors.IsForbidden
// where the operator may not get, list or watch it, or get its scale, apierrors.IsNotFound where the object is gone,
// errors.Is(err, ErrNoScale) where the kind has no scale. Any other error means that the server did not answer in time;
// later.Wait returns when it is asked again, unless it has not answered for a minute.
type Reader struct {
	options  Options
	scales   dynamic.Interface // not scale.ScalesGetter, for which apps.example.com may be apps: it maps groups by their prefix
	served   discovery.ServerResourcesInterface
	kinds    *kinds
	patience *patience
	recent   *utilcache.LRUExpireCache // identity to the server's answer about an object that the cache does not have
	replicas *lru.Cache                // types.UID to *remembered
	scaled   *utilcache.LRUExpireCache // schema.GroupKind to whether it has a scale
	unscaled *utilcache.LRUExpireCache // types.UID to counted
	asking   singleflight.Group
}

// New returns a Reader.
func New(o Options) (*Reader, error) {
	config := rest.CopyConfig(o.Config)
	config.Timeout = answerTimeout
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	scales, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of scales: %w", err)
	}
	p := newPatience(o.Clock)
	return &Reader{
		options:  o,
		scales:   scales,
		served:   served,
		kinds:    newKinds(o, p),
		patience: p,
		recent:   utilcache.NewLRUExpireCacheWithClock(cacheSize, o.Clock),
		replicas: lru.New(cacheSize),
		scaled:   utilcache.NewLRUExpireCacheWithClock(cacheSize, o.Clock),
		unscaled: utilcache.NewLRUExpireCacheWithClock(cacheSize, o.Clock),
	}, nil
}

// ask runs the question once for all concurrent callers with the same key, and stops waiting when answerTimeout or ctx
// ends. The question itself then continues for the other callers.
func ask[T any](
	ctx context.Context, p *patience, group *singleflight.Group, key string, question func(context.Context) (T, error),
) (T, error) {
	waiting, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answers := group.DoChan(key, func() (any, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
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
		return none, p.passing(fmt.Errorf("wait for the API server: %w", waiting.Err()), silentInterval)
	}
}
