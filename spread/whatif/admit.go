package whatif

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/admission"
)

// webhook is the name of the webhook in config/webhook that a server calls for a new pod.
const webhook = "mpod.spread.kb.io"

// Mutate is for Options.Mutate of the world: it puts a new pod into the subset that the pod gets on a server with the spreads of
// the world, and refuses one whose subset has a patch that does not fit. Unless the world is watched, that begins now.
func (s *Spreads) Mutate(w *cluster.World, e cluster.Event) error {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok || e.Type != cluster.Added || pod.Namespace == metav1.NamespaceSystem {
		return nil
	}
	s.Watch(w)
	_, err := s.webhook.Create(quiet(), coreadmission.Request[*corev1.Pod]{
		Operation: admissionv1.Create,
		New:       pod,
		Namespace: pod.Namespace,
		Name:      pod.Name,
		DryRun:    e.DryRun,
		User:      authenticationv1.UserInfo{Username: e.Actor},
	})
	return cluster.Denied(webhook, err)
}

// unplaced counts a creation without a subset.
func (s *Spreads) unplaced(namespace, name string, _ admission.Reason) {
	s.of(types.NamespacedName{Namespace: namespace, Name: name}).state.Unplaced++
}

// places keeps the places of subsets in the statuses of Spreads.
type places struct{ *Spreads }

// Known implements admission.Places.
func (p places) Known(ctx context.Context, key types.NamespacedName) (*v1beta1.WorkloadSpread, error) {
	return p.current(ctx, key)
}

// Enter implements admission.Places. A world has one writer, so that a place is recorded as soon as it is taken.
func (p places) Enter(ctx context.Context, key types.NamespacedName, r admission.Request) error {
	one := p.of(key)
	one.renew(ctx)
	spread, err := p.current(ctx, key)
	if err != nil {
		return err
	}
	if after := r.EnterIn(spread, func(name string) bool { return p.gone(key.Namespace, name) }); after != nil {
		one.keep(spread, after.Status)
	}
	return nil
}

// gone reports whether a pod has ended, or is about to.
func (s *Spreads) gone(namespace, name string) bool {
	pod := cluster.Get[*corev1.Pod](s.world.View(nil), namespace, name)
	return pod == nil || pod.DeletionTimestamp != nil
}

// current returns a spread with the status that Spreads keeps.
func (s *Spreads) current(ctx context.Context, key types.NamespacedName) (*v1beta1.WorkloadSpread, error) {
	stored, err := fastclient.Get[v1beta1.WorkloadSpread](ctx, s.cache, key)
	if err != nil {
		return nil, err
	}
	return s.withStatus(stored), nil
}

func (s *Spreads) withStatus(stored *v1beta1.WorkloadSpread) *v1beta1.WorkloadSpread {
	one := s.known[cluster.KeyOf(stored)]
	if one == nil || one.uid != stored.UID {
		return stored
	}
	now := *stored
	now.Status = one.state.Status
	return &now
}

// in returns the spreads of a namespace.
func (s *Spreads) in(ctx context.Context, namespace string) ([]*v1beta1.WorkloadSpread, error) {
	stored, err := fastclient.All[v1beta1.WorkloadSpread](ctx, s.cache, namespace)
	all := make([]*v1beta1.WorkloadSpread, len(stored))
	for i, one := range stored {
		all[i] = s.withStatus(one)
	}
	return all, err
}

// pods returns the pods of a namespace.
func (s *Spreads) pods(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
	return fastclient.All[corev1.Pod](ctx, s.cache, namespace)
}

// stored returns the names of the spreads of a namespace or, if it is empty, of all.
func (s *Spreads) stored(namespace string) (keys []types.NamespacedName) {
	all, err := s.in(quiet(), namespace)
	if err != nil {
		s.world.Violate("spreads cannot be listed: %v", err)
	}
	for _, one := range all {
		keys = append(keys, cluster.KeyOf(one))
	}
	return keys
}
