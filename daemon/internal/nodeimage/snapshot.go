package nodeimage

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/fastclient"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// snapshot reads the world of one node from the cache. Absent objects are nil in it.
func (r *reconciler) snapshot(ctx context.Context, name string) (plan.Snapshot, error) {
	s := plan.Snapshot{Name: name, CreationDelay: r.creationDelay, Now: r.Clock.Now()}
	var err error
	if s.Node, err = get[corev1.Node](ctx, r.Reader, name); err != nil {
		return s, fmt.Errorf("read node %s: %w", name, err)
	}
	if s.Image, err = get[v1beta1.NodeImage](ctx, r.Reader, name); err != nil {
		return s, fmt.Errorf("read node image %s: %w", name, err)
	}
	if s.Image == nil {
		return s, nil
	}
	s.Jobs, s.Secrets = map[types.NamespacedName]types.UID{}, map[types.NamespacedName]bool{}
	for _, image := range s.Image.Spec.Images {
		for i := range image.Tags {
			r.lookForJobs(ctx, image.Tags[i].OwnerReferences, s.Jobs)
		}
		for _, secret := range image.PullSecrets {
			if secret.Mode == "" {
				r.secrets.look(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, s.Secrets)
			}
		}
	}
	return s, nil
}

// lookForJobs fills in the jobs among the owners, each once.
func (r *reconciler) lookForJobs(ctx context.Context, owners []corev1.ObjectReference, found map[types.NamespacedName]types.UID) {
	for i := range owners {
		job, ok := plan.JobOf(owners[i])
		if _, known := found[job]; !ok || known {
			continue
		}
		if uid, known := r.jobs.uid(ctx, job); known {
			found[job] = uid
		}
	}
}

// get is the object from the cache, nil when it is not there.
func get[T any, P fastclient.Object[T]](ctx context.Context, r *fastclient.Reader, name string) (*T, error) {
	object, err := fastclient.Get[T, P](ctx, r, types.NamespacedName{Name: name})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// secretAge is how long an answer about a secret holds. NodeImages share their secrets, so that a secret is
// asked for once in that time and not once for each node.
const secretAge = time.Minute

// secrets asks the server whether secrets are there, and never for what is in them.
type secrets struct {
	live  client.Reader
	clock clock.PassiveClock

	mu    sync.Mutex
	known map[types.NamespacedName]answer
}

type answer struct {
	there bool
	at    time.Time
}

// look notes whether the secret is there. When the server does not say, nothing is noted.
func (s *secrets) look(ctx context.Context, name types.NamespacedName, found map[types.NamespacedName]bool) {
	if _, known := found[name]; known {
		return
	}
	now := s.clock.Now()
	s.mu.Lock()
	last, known := s.known[name]
	s.mu.Unlock()
	if !known || now.Sub(last.at) >= secretAge {
		there, err := s.ask(ctx, name)
		if err != nil {
			return
		}
		last = answer{there, now}
		s.remember(name, last)
	}
	found[name] = last.there
}

func (s *secrets) ask(ctx context.Context, name types.NamespacedName) (bool, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := s.live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// remember notes an answer and forgets those that do not hold any more.
func (s *secrets) remember(name types.NamespacedName, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, old := range s.known {
		if a.at.Sub(old.at) >= secretAge {
			delete(s.known, other)
		}
	}
	s.known[name] = a
}
