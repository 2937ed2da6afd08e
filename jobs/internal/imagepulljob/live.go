package imagepulljob

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

const (
	// podRecheck is how often the pods of a job with a podSelector are listed.
	podRecheck = 10 * time.Second
	// podAge and secretAge are how long answers of the server are used. They are a little less than the interval of
	// passes.
	podAge    = podRecheck - 2*time.Second
	secretAge = plan.SecretRecheck - time.Second
)

// answers caches answers of the server. Jobs share secrets, and passes come more often than answers change.
type answers[K comparable, V any] struct {
	clock clock.PassiveClock
	age   time.Duration // how long an answer is used

	mu    sync.Mutex
	known map[K]answer[V]
}

type answer[V any] struct {
	value V
	at    time.Time
}

// get returns an answer that is not too old, or asks.
func (a *answers[K, V]) get(key K, ask func() (V, error)) (V, error) {
	now := a.clock.Now()
	a.mu.Lock()
	last, known := a.known[key]
	a.mu.Unlock()
	if known && now.Sub(last.at) < a.age {
		return last.value, nil
	}
	value, err := ask()
	if err != nil {
		return value, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[K]answer[V]{}
	}
	for other, old := range a.known {
		if now.Sub(old.at) >= a.age {
			delete(a.known, other)
		}
	}
	a.known[key] = answer[V]{value, now}
	return value, nil
}

// pullSecrets reads pull secrets by their names. The manager may get secrets, not list them, so it sees no events of
// changes.
type pullSecrets struct {
	live      client.Reader
	namespace string // of the copies
	secrets   answers[types.NamespacedName, *corev1.Secret]
	ready     answers[string, bool]
	absent    answers[string, bool]
}

func newPullSecrets(live client.Reader, namespace string, clock clock.PassiveClock) *pullSecrets {
	return &pullSecrets{
		live:      live,
		namespace: namespace,
		secrets:   answers[types.NamespacedName, *corev1.Secret]{clock: clock, age: secretAge},
		ready:     answers[string, bool]{clock: clock, age: secretAge},
		absent:    answers[string, bool]{clock: clock, age: secretAge},
	}
}

// get returns a secret, nil if it is absent. After an error nothing is known of it.
func (s *pullSecrets) get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	secret, err := s.secrets.get(key, func() (*corev1.Secret, error) {
		found := &corev1.Secret{}
		err := s.live.Get(ctx, key, found)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return found, err
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read a pull secret", "secret", key)
	}
	return secret, err
}

// namespaceReady returns false if the namespace of the copies is known to be absent or going.
func (s *pullSecrets) namespaceReady(ctx context.Context) bool {
	ready, err := s.ready.get(s.namespace, func() (bool, error) {
		namespace := &corev1.Namespace{}
		err := s.live.Get(ctx, client.ObjectKey{Name: s.namespace}, namespace)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return namespace.DeletionTimestamp == nil, err
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to read the namespace of pull secrets", "namespace", s.namespace)
		return true
	}
	return ready
}

// gone reports whether the server has no secret of that name in the namespace of the copies, which the cache does not show:
// the cache may lag behind a job that has just made the copy.
func (s *pullSecrets) gone(ctx context.Context, name string) bool {
	absent, err := s.absent.get(name, func() (bool, error) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := s.live.List(ctx, list, client.InNamespace(s.namespace), client.MatchingFields{"metadata.name": name})
		return len(list.Items) == 0, err
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to check whether a copy of a pull secret exists", "secret", name)
	}
	return err == nil && absent
}

// podLists lists the pods that jobs select by podSelector. They are listed and not watched: a cache of all pods of a
// cluster would cost more than all jobs.
type podLists struct {
	live  client.Reader
	lists answers[podList, []string]
}

// podList is a list of pods. A selector that was edited is another one.
type podList struct {
	uid        types.UID
	generation int64
}

// nodes returns the names of the nodes with matching pods, in the order in which the workload that controls the job
// updates them.
func (l *podLists) nodes(ctx context.Context, job *v1beta1.ImagePullJob) ([]string, error) {
	return l.lists.get(podList{job.UID, job.Generation}, func() ([]string, error) {
		selector, err := metav1.LabelSelectorAsSelector(job.Spec.PodSelector)
		if err != nil {
			return nil, fmt.Errorf("read spec.podSelector: %w", err)
		}
		list := &corev1.PodList{}
		// Version 0 is served from the memory of the API server, which may be a moment behind.
		err = l.live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabelsSelector{Selector: selector},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
		if err != nil {
			return nil, fmt.Errorf("list the pods of a job: %w", err)
		}
		return l.order(ctx, job).NodesOf(list.Items, l.lists.clock.Now()), nil
	})
}

// order returns the order in which the workload that controls the job updates its pods. Where it cannot be read pods
// are pulled for all the same, in another order.
func (l *podLists) order(ctx context.Context, job *v1beta1.ImagePullJob) plan.Order {
	owner := metav1.GetControllerOfNoCopy(job)
	switch {
	case owner == nil:
		return plan.Order{}
	case !plan.IsRead(owner):
		return plan.OrderOf(owner, nil)
	}
	workload := &unstructured.Unstructured{}
	workload.SetAPIVersion(owner.APIVersion)
	workload.SetKind(owner.Kind)
	err := l.live.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: owner.Name}, workload)
	switch {
	case err == nil && workload.GetUID() == owner.UID:
		return plan.OrderOf(owner, workload.Object)
	case err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
		log.FromContext(ctx).Error(err, "Failed to read the update order of pods", "kind", owner.Kind, "workload", owner.Name)
	}
	return plan.OrderOf(owner, nil)
}
