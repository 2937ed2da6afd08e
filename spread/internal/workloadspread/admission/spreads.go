package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// maxSkew is how far the clock of another replica may be ahead. Anybody who may edit a namespace can write a later time.
const maxSkew = time.Minute

// young is how long the cache may take to show a WorkloadSpread that was admitted.
const young = 2 * time.Second

// List finds WorkloadSpreads by namespace. It is safe for concurrent use.
type List struct {
	// Cached returns the WorkloadSpreads of a namespace from the cache, Live reads the server.
	Cached func(ctx context.Context, namespace string) ([]*v1beta1.WorkloadSpread, error)
	Live   client.Reader
	// Admitted returns when a WorkloadSpread of the namespace was last admitted by any replica, as far as the cache shows.
	Admitted func(ctx context.Context, namespace string) time.Time
	Clock    clock.PassiveClock

	mu       sync.Mutex
	admitted map[string]time.Time // the last admission by namespace, of the last moments
}

// expect notes that a WorkloadSpread of the namespace is about to be stored.
func (l *List) expect(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admitted == nil {
		l.admitted = map[string]time.Time{}
	}
	now := l.Clock.Now()
	for name, at := range l.admitted {
		if now.Sub(at) > young {
			delete(l.admitted, name)
		}
	}
	l.admitted[namespace] = now
}

// isBehind reports whether the cache may lack a WorkloadSpread: it shows none in a namespace that is marked, or one was
// just admitted, here or by another replica.
func (l *List) isBehind(ctx context.Context, namespace string, cached int) bool {
	if age := l.Clock.Since(l.Admitted(ctx, namespace)); cached == 0 || age <= young && age > -maxSkew {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.admitted[namespace]
	return ok && l.Clock.Since(at) <= young
}

// find returns the WorkloadSpread of the namespace that is wanted, of several the one to which their pods belong, nil for
// none. The server is asked where the cache may be behind: the first pods often come right after the WorkloadSpread.
func (l *List) find(ctx context.Context, namespace string, wanted func(*v1beta1.WorkloadSpread) bool) (*v1beta1.WorkloadSpread, error) {
	cached, err := l.Cached(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("list workload spreads: %w", err)
	}
	if found := first(cached, wanted); found != nil || !l.isBehind(ctx, namespace, len(cached)) {
		return found, nil
	}
	var all v1beta1.WorkloadSpreadList
	if err := l.Live.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list workload spreads: %w", err)
	}
	live := make([]*v1beta1.WorkloadSpread, len(all.Items))
	for i := range all.Items {
		live[i] = &all.Items[i]
	}
	return first(live, wanted), nil
}

// mayHave reports whether the namespace may have a WorkloadSpread that is wanted, as far as the cache shows.
func (l *List) mayHave(ctx context.Context, namespace string, wanted func(*v1beta1.WorkloadSpread) bool) bool {
	cached, err := l.Cached(ctx, namespace)
	return err != nil || slices.ContainsFunc(cached, wanted) || l.isBehind(ctx, namespace, len(cached))
}

func first(spreads []*v1beta1.WorkloadSpread, wanted func(*v1beta1.WorkloadSpread) bool) (found *v1beta1.WorkloadSpread) {
	for _, s := range spreads {
		if wanted(s) && (found == nil || subsets.Precedes(s, found)) {
			found = s
		}
	}
	return found
}
