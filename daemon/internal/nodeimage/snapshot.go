package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// sources are where passes read from, and their settings.
type sources struct {
	Reader *fastclient.Reader
	// Live reads from the server.
	Live client.Reader
	// Refusals returns the writes for an object that the server has refused.
	Refusals func(of client.Object, now time.Time) action.Refusals
	Clock    clock.PassiveClock
	// CreationDelay is how long a node must have been ready before it gets a NodeImage.
	CreationDelay time.Duration
}

// passes read the objects of one node, and plan. They hold no state that the cluster does not hold; their memory only
// saves requests.
type passes struct {
	sources
	jobs      *jobs
	secrets   *secrets
	agents    *agents
	sightings *plan.Sightings
}

func newPasses(s sources) *passes {
	return &passes{
		sources: s,
		jobs: &jobs{
			Kind:  optional.ImagePullJobs(),
			live:  s.Live,
			clock: s.Clock,
			gone:  answers[plan.Job]{age: goneAge},
		},
		secrets: &secrets{
			live:  s.Live,
			clock: s.Clock,
			known: answers[types.NamespacedName]{age: secretAge},
		},
		agents:    &agents{since: map[types.NamespacedName]time.Time{}},
		sightings: &plan.Sightings{},
	}
}

// Look reads the objects of one node, and plans.
func (p *passes) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	snap, err := p.snapshot(ctx, key.Name)
	if err != nil {
		return pass.Pass{}, err
	}
	if snap.Image == nil {
		p.agents.Forget(key)
		p.sightings.Forget(key)
	}
	if snap.Image == nil && snap.Node == nil {
		return pass.Pass{}, apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("nodeimages").GroupResource(), key.Name)
	}
	snap.Refusals = p.Refusals(owner(snap), snap.Now)
	todo := plan.Compute(snap)
	made := pass.Pass{Object: owner(snap)}
	if p.reports(snap, &todo) {
		made.Status = func(action.Failures) client.Object {
			after := snap.Image.DeepCopy()
			after.Status = *todo.Status
			return after
		}
		made.After = func(_ context.Context, reported bool) time.Duration {
			if reported {
				p.agents.Forget(key)
			}
			return 0
		}
		todo.Notices, made.OtherNotices = notices(snap.Name, todo.Failures)
	}
	made.Plan = todo.Plan
	return made, nil
}

// owner returns the object that the actions are recorded for: the NodeImage, or the node that is to get one.
func owner(snap plan.Snapshot) client.Object {
	if snap.Image != nil {
		return snap.Image
	}
	return snap.Node
}

// snapshot reads the objects of one node from the cache. Absent objects are nil.
func (p *passes) snapshot(ctx context.Context, name string) (plan.Snapshot, error) {
	s := plan.Snapshot{
		Name:          name,
		CreationDelay: p.CreationDelay,
		Now:           p.Clock.Now(),
	}
	var err error
	if s.Node, err = get[corev1.Node](ctx, p.Reader, name); err != nil {
		return s, fmt.Errorf("read node %s: %w", name, err)
	}
	if s.Image, err = get[v1beta1.NodeImage](ctx, p.Reader, name); err != nil {
		return s, fmt.Errorf("read node image %s: %w", name, err)
	}
	if s.Image == nil {
		return s, nil
	}
	s.Seen = p.sightings.See(s.Image, s.Now)
	s.Jobs, s.Secrets = map[plan.Job]bool{}, map[types.NamespacedName]bool{}
	for _, image := range s.Image.Spec.Images {
		for i := range image.Tags {
			p.lookForJobs(ctx, image.Tags[i].OwnerReferences, s.Jobs)
		}
		for _, secret := range image.PullSecrets {
			if secret.Mode == "" {
				p.secrets.look(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, s.Secrets)
			}
		}
	}
	return s, nil
}

// lookForJobs records which jobs among the owners exist, each once.
func (p *passes) lookForJobs(ctx context.Context, owners []corev1.ObjectReference, found map[plan.Job]bool) {
	for i := range owners {
		job, ok := plan.JobOf(owners[i])
		if _, known := found[job]; !ok || known {
			continue
		}
		if there, known := p.jobs.there(ctx, job); known {
			found[job] = there
		}
	}
}

// get returns the object from the cache, nil when it is not there.
func get[T any, P fastclient.Object[T]](ctx context.Context, r *fastclient.Reader, name string) (*T, error) {
	object, err := fastclient.Get[T, P](ctx, r, types.NamespacedName{Name: name})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}
