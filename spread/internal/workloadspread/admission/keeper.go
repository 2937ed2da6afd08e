package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/ledger"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// lookups is how many pods are looked up at a time.
const lookups = 10

// Keeper keeps the places of subsets, as core/controllers/ledger describes. It is safe for concurrent use.
type Keeper struct {
	// Cached returns a spread from the cache, Live reads the server, Writer writes.
	Cached func(context.Context, types.NamespacedName) (*v1beta1.WorkloadSpread, error)
	Live   client.Reader
	Writer client.Client
	Clock  clock.Clock

	once   sync.Once
	shared *statuses
}

type statuses = ledger.Ledger[v1beta1.WorkloadSpread, *Request, *v1beta1.WorkloadSpread]

// Known implements Places.
func (k *Keeper) Known(ctx context.Context, key types.NamespacedName) (*v1beta1.WorkloadSpread, error) {
	return k.Cached(ctx, key)
}

// Enter implements Places. It may ask the request several times; the last answer counts.
func (k *Keeper) Enter(ctx context.Context, key types.NamespacedName, r Request) error {
	spread, err := k.Cached(ctx, key)
	if apierrors.IsNotFound(err) { // or it is too young for the cache
		spread = &v1beta1.WorkloadSpread{}
		err = k.Live.Get(ctx, key, spread)
	}
	if err != nil {
		return fmt.Errorf("get workload spread %s: %w", key, err)
	}
	_, err = k.statuses().Ask(ctx, spread, &r)
	if errors.Is(err, ledger.ErrGone) {
		return apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("workloadspreads").GroupResource(), key.Name)
	}
	if err != nil {
		return fmt.Errorf("update the status of workload spread %s: %w", key, err)
	}
	return nil
}

// Through writes a status of the controller together with the places that wait to be recorded.
func (k *Keeper) Through(ctx context.Context, object client.Object, next func(client.Object) client.Object) (client.Object, error) {
	return k.statuses().Through(ctx, object, next)
}

func (k *Keeper) statuses() *statuses {
	k.once.Do(func() { k.shared = &statuses{Client: k.Writer, Live: k.Live, Clock: k.Clock, Decide: k.decide} })
	return k.shared
}

// decide enters a group of requests.
func (k *Keeper) decide(group []*Request) func(context.Context, *v1beta1.WorkloadSpread) (ledger.Decision[*v1beta1.WorkloadSpread], error) {
	pods := &lookup{live: k.Live, known: map[string]bool{}}
	return func(ctx context.Context, base *v1beta1.WorkloadSpread) (d ledger.Decision[*v1beta1.WorkloadSpread], err error) {
		pods.begin(ctx, base, group)
		after, passedOver := entered(base, group, func(pod string) bool { return pods.gone(ctx, pod) })
		if ctx.Err() != nil { // a pod without an answer counts as running: that is nothing to decide by
			return d, fmt.Errorf("look up the pods of workload spread %s: %w", base.Name, ctx.Err())
		}
		d.Confirm, d.After = passedOver, after // another client may have freed a place since
		return d, nil
	}
}

// lookup remembers which pods do not run any more. That lasts for all attempts of a group; pods that still ran are asked
// about again.
type lookup struct {
	live      client.Reader
	namespace string
	known     map[string]bool
	leaving   []string // pods that are about to go according to the spread, sorted
}

// begin looks up the pods of requests after the spread was read: one that is active now was counted there.
func (l *lookup) begin(ctx context.Context, base *v1beta1.WorkloadSpread, group []*Request) {
	l.namespace = base.Namespace
	maps.DeleteFunc(l.known, func(_ string, gone bool) bool { return !gone })
	var names []string
	for _, r := range group {
		if r.pod != "" {
			names = append(names, r.pod)
		}
	}
	l.askAll(ctx, names)
	l.leaving = nil
	for _, list := range base.Status.VersionedSubsetStatuses {
		for i := range list {
			l.leaving = slices.AppendSeq(l.leaving, maps.Keys(list[i].DeletingPods))
		}
	}
	slices.Sort(l.leaving)
}

// gone reports whether a pod does not run any more, or is about to end. With it the next ones are looked up that are
// likely to be asked for, as many as can be at a time.
func (l *lookup) gone(ctx context.Context, name string) bool {
	if _, ok := l.known[name]; !ok {
		names := []string{name}
		next, _ := slices.BinarySearch(l.leaving, name)
		for _, other := range l.leaving[next:] {
			if _, ok := l.known[other]; !ok && other != name && len(names) < lookups {
				names = append(names, other)
			}
		}
		l.askAll(ctx, names)
	}
	return l.known[name]
}

// askAll asks the server for the pods of which nothing is known.
func (l *lookup) askAll(ctx context.Context, names []string) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := l.known[name]; return ok })
	answers := make([]bool, len(names))
	slots := make(chan struct{}, lookups)
	var all sync.WaitGroup
	for i := range names {
		slots <- struct{}{}
		all.Go(func() {
			answers[i] = l.ask(ctx, names[i])
			<-slots
		})
	}
	all.Wait()
	for i, name := range names {
		l.known[name] = answers[i]
	}
}

// ask asks the server. A pod of which nothing is known counts as running.
func (l *lookup) ask(ctx context.Context, name string) bool {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := l.live.Get(ctx, types.NamespacedName{Namespace: l.namespace, Name: name}, pod)
	return apierrors.IsNotFound(err) || err == nil && pod.DeletionTimestamp != nil
}
