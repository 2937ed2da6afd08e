package endurance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// mostEdits is how many edits a life has at most.
	mostEdits = 8
	// patience is the longest wait for the end of some work, and poll the time between two looks at it.
	patience = 5 * time.Minute
	poll     = time.Second
	// mostFailures is how many failures are kept with their text.
	mostFailures = 20
)

// Work counts what was done.
type Work struct {
	// Lives is how many lives ended as they should, by kind. Edits, Deletions and Evictions are what happened in them.
	Lives                       map[string]int `json:"lives"`
	Edits, Deletions, Evictions int
	// Refused is how many deletions and evictions of pods were refused, for instance by a budget.
	Refused int
	// Failed is how many lives did not end as they should, and Failures the reasons of the first.
	Failed   int
	Failures []string `json:",omitempty"`

	mu sync.Mutex
}

func (w *Work) add(to *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*to++
}

// ends records the end of a life.
func (w *Work) ends(kind string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.Lives[kind]++
		return
	}
	w.Failed++
	if len(w.Failures) < mostFailures {
		w.Failures = append(w.Failures, kind+": "+err.Error())
	}
}

// place makes one life of a kind after the other.
type place struct {
	Kind
	client client.Client
	random *rand.Rand
	pause  time.Duration // on average, between two edits
	work   *Work
}

// live makes lives until ctx ends. A life that has begun then ends early, and is not counted.
func (p place) live(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.life(ctx); ctx.Err() == nil {
			p.work.ends(p.Name, err)
		}
		p.wait(ctx)
	}
}

// life creates the objects in a new namespace, edits them at random, waits until the work is done, and deletes the namespace.
func (p place) life(ctx context.Context) (err error) {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: p.Name + "-"}}
	if err := p.client.Create(ctx, space); err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	defer func() {
		err = errors.Join(err, p.end(context.WithoutCancel(ctx), space))
	}()
	objects, err := p.objects()
	if err != nil {
		return err
	}
	for _, o := range objects {
		o.SetNamespace(space.Name)
		if err := p.create(ctx, o); err != nil {
			return err
		}
	}
	if len(p.edits) > 0 {
		for range p.random.IntN(mostEdits) + 1 {
			p.wait(ctx)
			if err := p.disturb(ctx, objects[0]); err != nil {
				return err
			}
		}
	}
	return p.settle(ctx, objects[p.main])
}

// wait takes between none and twice the pause.
func (p place) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(p.random.Int64N(int64(2*p.pause) + 1))):
	}
}

// create creates an object as soon as it is accepted: a namespace gets its account some time after its creation, and a request
// needs a pod that runs.
func (p place) create(ctx context.Context, o *unstructured.Unstructured) error {
	return p.until(ctx, "the creation of "+o.GetKind(), func(ctx context.Context) (bool, error) {
		err := p.client.Create(ctx, o.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err), err
	})
}

// disturb edits the object, or deletes or evicts one of the pods.
func (p place) disturb(ctx context.Context, o *unstructured.Unstructured) error {
	const edits, all = 3, 5
	choice := p.random.IntN(all)
	if choice < edits {
		patch := p.edits[p.random.IntN(len(p.edits))](p.random)
		if err := p.client.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return fmt.Errorf("patch %s with %s: %w", o.GetKind(), patch, err)
		}
		p.work.add(&p.work.Edits)
		return nil
	}
	pods := &corev1.PodList{}
	if err := p.client.List(ctx, pods, client.InNamespace(o.GetNamespace())); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil
	}
	pod := &pods.Items[p.random.IntN(len(pods.Items))]
	if choice == edits {
		return p.disrupt(p.client.Delete(ctx, pod), &p.work.Deletions)
	}
	return p.disrupt(p.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{}), &p.work.Evictions)
}

// disrupt counts a request that deletes or evicts a pod by its answer. A budget refuses an eviction as one of too many requests,
// and a deletion as forbidden.
func (p place) disrupt(answer error, done *int) error {
	switch {
	case apierrors.IsTooManyRequests(answer), apierrors.IsForbidden(answer):
		p.work.add(&p.work.Refused)
	case client.IgnoreNotFound(answer) != nil:
		return fmt.Errorf("delete or evict a pod: %w", answer)
	default:
		p.work.add(done)
	}
	return nil
}

// settle waits until the work of the object is done, or the object is gone because its time after that is over.
func (p place) settle(ctx context.Context, o *unstructured.Unstructured) error {
	return p.until(ctx, "the end of the work of "+o.GetKind(), func(ctx context.Context) (bool, error) {
		now := o.DeepCopy()
		err := p.client.Get(ctx, client.ObjectKeyFromObject(o), now)
		return apierrors.IsNotFound(err) || err == nil && p.done(now), client.IgnoreNotFound(err)
	})
}

func (p place) end(ctx context.Context, space *corev1.Namespace) error {
	if err := p.client.Delete(ctx, space); err != nil {
		return fmt.Errorf("delete the namespace: %w", err)
	}
	return p.until(ctx, "the end of namespace "+space.Name, func(ctx context.Context) (bool, error) {
		err := p.client.Get(ctx, client.ObjectKeyFromObject(space), space)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// until asks until the answer is yes. Errors are asked again: the last one is part of the error.
func (p place) until(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		yes, last := ask(ctx)
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(ctx.Err(), last))
		case <-time.After(poll):
		}
	}
}
