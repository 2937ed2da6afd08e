package imagepulljob

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// shown are the objects in the caches of the manager. An object that is absent is an error that satisfies IsNotFound.
type shown interface {
	Job(ctx context.Context, key types.NamespacedName) (*v1beta1.ImagePullJob, error)
	NodeImage(ctx context.Context, name string) (*nodeimage.NodeImage, error)
	NodeImages(ctx context.Context) ([]*nodeimage.NodeImage, error)
	// NodeImagesOf returns those with a tag that the job owns.
	NodeImagesOf(ctx context.Context, job types.UID) ([]*nodeimage.NodeImage, error)
	// Nodes returns false while nodes are not cached.
	Nodes(ctx context.Context) ([]*corev1.Node, bool, error)
	// Secret returns a secret in the namespace of the copies.
	Secret(ctx context.Context, name string) (*corev1.Secret, error)
	// Copies returns the secrets in that namespace with a key in copyIndex.
	Copies(ctx context.Context, key string) ([]*corev1.Secret, error)
	// Lacking returns the verbs that the manager needs and may not use on secrets in that namespace.
	Lacking(ctx context.Context) []string
}

// knownRefusals returns the writes for an object that the server has refused.
type knownRefusals func(of client.Object, now time.Time) action.Refusals

// sources are where passes read from, and their settings.
type sources struct {
	Shown shown
	// Live reads from the server.
	Live     client.Reader
	Refusals knownRefusals
	Clock    clock.PassiveClock
	// TTL is how much longer than its job a tag stays on a node.
	TTL time.Duration
	// Namespace is that of the copies of pull secrets.
	Namespace string
	// WithoutCopies is true where that namespace is not cached.
	WithoutCopies bool
}

// passes read the objects of a job, and plan. Their memory only saves requests.
type passes struct {
	sources
	secrets *pullSecrets
	pods    *podLists
}

func newPasses(s sources) *passes {
	return &passes{
		sources: s,
		secrets: newPullSecrets(s.Live, s.Namespace, s.Clock),
		pods:    &podLists{live: s.Live, lists: answers[podList, []string]{clock: s.Clock, age: podAge}},
	}
}

// Look reads the objects of one job, and plans.
func (p *passes) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	snap, err := p.snapshot(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	snap.Refusals = p.Refusals(snap.Job, snap.Now)
	todo := plan.Compute(snap)
	if status := todo.Status(action.Failures{}); usesPods(snap.Job) && status != nil && status.CompletionTime == nil {
		todo.RequeueWithin(podRecheck)
	}
	return passOf(snap.Job, &todo), nil
}

// passOf returns the pass that carries out a plan.
func passOf(job *v1beta1.ImagePullJob, todo *plan.Plan) pass.Pass {
	return pass.Pass{
		Object: job,
		Plan:   todo.Plan,
		Err:    todo.Err,
		Status: func(done action.Failures) client.Object {
			status := todo.Status(done)
			if status == nil {
				return nil
			}
			after := job.DeepCopy()
			after.Status = *status
			return after
		},
	}
}

// copyPasses read a copy of a secret and the jobs that it refers to, and plan.
type copyPasses struct {
	Shown    shown
	Refusals knownRefusals
	Clock    clock.PassiveClock
}

// Look reads one copy and its jobs, and plans.
func (p *copyPasses) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	copied, err := p.Shown.Secret(ctx, key.Name)
	if err != nil {
		return pass.Pass{}, fmt.Errorf("read copy %s of a secret: %w", key, err)
	}
	var gone []string
	for _, job := range plan.References(copied) {
		_, err := p.Shown.Job(ctx, plan.JobOf(job))
		switch {
		case apierrors.IsNotFound(err):
			gone = append(gone, job)
		case err != nil:
			return pass.Pass{}, fmt.Errorf("read image pull job %s: %w", job, err)
		}
	}
	now := p.Clock.Now()
	return pass.Pass{Object: copied, Plan: plan.Release(copied, gone, p.Refusals(copied, now), now)}, nil
}
