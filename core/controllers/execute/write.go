package execute

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// pass is one call of Run.
type pass struct {
	*Executor
	owner    client.Object
	workload types.NamespacedName

	adoption    sync.Once
	adoptionErr error
	mounts      *mounts
	listing     atomic.Int64 // how long reading them took
}

// try carries out one action. A dry run takes time, too.
func (p *pass) try(ctx context.Context, a *action.Action) progress.Outcome {
	outdated := func() bool { return a.Expired(p.options.Clock.Now()) }
	r := progress.Outcome{State: progress.Done}
	if !outdated() {
		r = p.dryRun(ctx, a)
	}
	switch {
	case r.State != progress.Done:
	case outdated():
		r = progress.Expired(a)
	default:
		r = p.write(ctx, a)
	}
	r.Action = a
	return r
}

// write writes the action if its guard lets it.
func (p *pass) write(ctx context.Context, a *action.Action) progress.Outcome {
	if r := p.guard(ctx, a); r.State != progress.Done {
		return r
	}
	switch a.Verb {
	case action.Create:
		return p.create(ctx, a)
	case action.Delete:
		return p.delete(ctx, a)
	default:
		return p.patch(ctx, a)
	}
}

// guard returns Done if the precondition of the action holds.
func (p *pass) guard(ctx context.Context, a *action.Action) progress.Outcome {
	if a.Guard != action.Unmounted {
		return progress.Outcome{State: progress.Done}
	}
	verb := strings.ToLower(string(a.Verb))
	switch pod, err := p.mountingPod(ctx, a.Object, a.ForPod); {
	case err != nil:
		return progress.OutcomeOf(fmt.Errorf("%s %s: %w", verb, p.name(a.Object), err))
	case pod != "":
		return progress.ClaimMounted(verb+" "+p.name(a.Object), pod)
	}
	return progress.Outcome{State: progress.Done}
}

func (p *pass) create(ctx context.Context, a *action.Action) progress.Outcome {
	for _, first := range a.Prerequisites {
		if _, err := p.post(ctx, first); err != nil && !apierrors.IsAlreadyExists(err) {
			return progress.OutcomeOf(fmt.Errorf("create %s: %w", p.name(first), err))
		}
	}
	created, err := p.post(ctx, a.Object)
	switch {
	case err == nil:
		return progress.Outcome{State: progress.Done, Object: created}
	case apierrors.IsAlreadyExists(err):
		return p.collision(ctx, a.Object, err)
	default:
		return progress.OutcomeOf(fmt.Errorf("create %s: %w", p.name(a.Object), err))
	}
}

// post creates a copy of the object, which belongs to the plan.
func (p *pass) post(ctx context.Context, o client.Object) (client.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	created := o.DeepCopyObject().(client.Object)
	err := p.options.Client.Create(ctx, created)
	switch {
	case err == nil:
		p.options.Recorder.Created(p.workload, created)
	case progress.MayHaveSucceeded(err):
		p.options.Recorder.MaybeCreated(p.workload, o)
	}
	return created, err
}

// collision returns the outcome of a create if an object already has the name.
func (p *pass) collision(ctx context.Context, o client.Object, exists error) progress.Outcome {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	found, err := p.metadata(o)
	if err == nil {
		err = p.options.Live.Get(ctx, client.ObjectKeyFromObject(o), found)
	}
	if err != nil {
		return progress.OutcomeOf(fmt.Errorf("read %s, which already exists: %w", p.name(o), err))
	}
	r := progress.NameTaken("create "+p.name(o), exists, found, p.owner.GetUID())
	if r.State == progress.Stale { // the owner has it
		p.options.Recorder.Written(p.workload, found)
	}
	return r
}

func (p *pass) delete(ctx context.Context, a *action.Action) progress.Outcome {
	options := []client.DeleteOption{preconditionsOf(a.Object)}
	if a.Propagation != "" {
		options = append(options, client.PropagationPolicy(a.Propagation))
	}
	if err := p.remove(ctx, a.Object, options...); err != nil {
		return progress.OutcomeOf(fmt.Errorf("delete %s: %w", p.name(a.Object), err))
	}
	p.mounts.removed.Store(a.Object.GetUID(), true)
	for _, then := range a.Dependents {
		pod, err := p.mountingPod(ctx, then, "")
		if err != nil {
			return progress.OutcomeOf(fmt.Errorf("delete %s: %w", p.name(then), err))
		}
		if pod != "" { // it is checked again, now that its own pod is terminating
			continue
		}
		if err := p.remove(ctx, then, client.Preconditions{UID: new(then.GetUID())}); err != nil && !apierrors.IsNotFound(err) {
			return progress.OutcomeOf(fmt.Errorf("delete %s: %w", p.name(then), err))
		}
	}
	return progress.Outcome{State: progress.Done}
}

func (p *pass) remove(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	target, err := p.metadata(o)
	if err != nil {
		return err
	}
	if err := p.options.Client.Delete(ctx, target, options...); err != nil {
		p.lost(err, target)
		return err
	}
	p.options.Recorder.Deleted(p.workload, o)
	return nil
}

// lost records that an object, given as it was before, may have been written or deleted although there was an error.
func (p *pass) lost(err error, before client.Object) {
	if progress.MayHaveSucceeded(err) {
		p.options.Recorder.MaybeWritten(p.workload, before)
	}
}

// preconditionsOf returns preconditions: the object must be the same one, in the version that the plan was made from.
// An object that is deleted along with another one only needs to be the same: the decision does not depend on its
// version.
func preconditionsOf(o client.Object) client.Preconditions {
	return client.Preconditions{UID: new(o.GetUID()), ResourceVersion: new(o.GetResourceVersion())}
}

func (p *pass) patch(ctx context.Context, a *action.Action) progress.Outcome {
	if a.Verb == action.Adopt {
		if err := p.mayAdopt(ctx); err != nil {
			return progress.OutcomeOf(fmt.Errorf("adopt %s: %w", p.name(a.Object), err))
		}
	}
	metadata, err := p.metadata(a.Object)
	if err != nil {
		return progress.OutcomeOf(err)
	}
	_, whole := a.Object.(*corev1.Pod)
	current := client.Object(metadata)
	for i, change := range a.Patches {
		answer := target(metadata.TypeMeta, current, whole)
		if err := p.send(ctx, answer, change, false); err != nil {
			p.lost(err, current)
			r := progress.OutcomeOf(fmt.Errorf("patch %s: %w", p.part(a, change), err))
			r.Late = i > 0
			return r
		}
		if answer.GetResourceVersion() == current.GetResourceVersion() {
			p.noops.Inc()
		}
		p.options.Recorder.Written(p.workload, answer)
		current = answer
	}
	return progress.Outcome{State: progress.Done, Object: current}
}

// target returns an object that takes the answer to a write. A pod is asked for as a whole: the next plan sees it before
// the cache shows it. For other objects, asking for metadata only saves decoding whole ones.
func target(kind metav1.TypeMeta, planned client.Object, pod bool) client.Object {
	if pod {
		return &corev1.Pod{ObjectMeta: identity(planned)}
	}
	return &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: identity(planned)}
}

// identity returns the metadata that name an object and its version.
func identity(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:       o.GetNamespace(),
		Name:            o.GetName(),
		UID:             o.GetUID(),
		ResourceVersion: o.GetResourceVersion(),
	}
}

// send sends one patch for the version in current, and replaces current by the answer.
func (p *pass) send(ctx context.Context, current client.Object, change action.Patch, dryRun bool) error {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	body, err := json.Marshal(withPreconditions(change, current))
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	kind := change.Type
	if kind == "" {
		kind = types.StrategicMergePatchType
	}
	if change.Subresource == "" {
		o := &client.PatchOptions{FieldManager: change.FieldManager}
		if dryRun {
			o.DryRun = []string{metav1.DryRunAll}
		}
		return p.options.Client.Patch(ctx, current, client.RawPatch(kind, body), o)
	}
	o := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldManager: change.FieldManager}}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return p.options.Client.SubResource(change.Subresource).Patch(ctx, current, client.RawPatch(kind, body), o)
}

// withPreconditions returns a copy of the patch with the UID and the resourceVersion that it is meant for.
func withPreconditions(change action.Patch, planned client.Object) map[string]any {
	meta := map[string]any{}
	if given, ok := change.Body["metadata"].(map[string]any); ok {
		meta = maps.Clone(given)
	}
	meta["uid"] = string(planned.GetUID())
	if !change.AnyVersion {
		meta["resourceVersion"] = planned.GetResourceVersion()
	}
	whole := make(map[string]any, len(change.Body)+1)
	maps.Copy(whole, change.Body)
	whole["metadata"] = meta
	return whole
}

// mayAdopt reads the owner from the server, once in a pass: an owner that is gone or terminating must not adopt
// anything.
func (p *pass) mayAdopt(ctx context.Context) error {
	p.adoption.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
		defer cancel()
		live, err := p.metadata(p.owner)
		if err != nil {
			p.adoptionErr = err
			return
		}
		gvk := live.GroupVersionKind()
		err = p.options.Live.Get(ctx, p.workload, live)
		switch {
		case err != nil:
			p.adoptionErr = fmt.Errorf("read the owner: %w", err)
		case live.UID != p.owner.GetUID() || live.DeletionTimestamp != nil:
			resource := schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}
			p.adoptionErr = apierrors.NewNotFound(resource, p.owner.GetName())
		}
	})
	return p.adoptionErr
}

// metadata returns the identity of an object, as far as a write needs it.
func (p *pass) metadata(o client.Object) (*metav1.PartialObjectMetadata, error) {
	gvk, err := apiutil.GVKForObject(o, p.options.Client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", o, err)
	}
	m := &metav1.PartialObjectMetadata{ObjectMeta: identity(o)}
	m.SetGroupVersionKind(gvk)
	return m, nil
}

// name returns an object's kind and name for messages, such as "pod web-1".
func (p *pass) name(o client.Object) string {
	gvk, err := apiutil.GVKForObject(o, p.options.Client.Scheme())
	if err != nil {
		return o.GetName()
	}
	return strings.ToLower(gvk.Kind) + " " + o.GetName()
}
