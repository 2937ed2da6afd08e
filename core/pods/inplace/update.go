package inplace

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// NodeAgentMissingError means that a container must be restarted, for its environment or as it is, and that no agent on
// the node is known to do it.
type NodeAgentMissingError struct {
	// Container is the first container that the node agent has not reported.
	Container string
	// StartedAt is when it was started, by its node's clock; zero unless it runs.
	StartedAt time.Time
}

// Error names the container.
func (e *NodeAgentMissingError) Error() string {
	return fmt.Sprintf("container %s must restart, but the node agent has not reported it (annotation %s). Is the agent running on this node?",
		e.Container, contract.RuntimeContainersMetaAnnotation)
}

// Update is a change of the template that can be made in place. It is the same for all pods of the older revision and
// read-only; its writes to one pod also depend on the present values of that pod.
type Update struct {
	revision string
	template *corev1.PodTemplateSpec
	scope    diff.Scope
	options  Options
	// needsAgent is true if a container reads a key of the scope, or is to be restarted as it is.
	needsAgent bool
}

// Diff reports whether a pod of revision from can be brought to revision to in place, compared by the meaning of the
// two templates, defaults included, not by their bytes. The error is a *NotPossibleError.
func Diff(from, to *Revision, o Options) (*Update, error) {
	s, err := diff.Templates(from, to, o)
	if err != nil {
		return nil, err
	}
	return &Update{
		revision:   to.Name,
		template:   to.Template,
		scope:      *s,
		options:    o,
		needsAgent: s.Restarts.Len() > 0 || o.EnvFromMetadata && s.ReadByEnv(to.Template),
	}, nil
}

// Revision is the full name of the revision that the update leads to.
func (u *Update) Revision() string { return u.revision }

// Check reports whether the update can be made on this pod. A limit cannot be raised of a container that is down, nor a
// limit of memory lowered where the cluster does not do that (*NotPossibleError). Containers that read a changed label or
// annotation, and those that are restarted as they are, need the readiness gate, without which the node agent restarts
// nothing (*NotPossibleError), and a node agent that knows them (*NodeAgentMissingError).
func (u *Update) Check(pod *corev1.Pod) error {
	before := record.ReadPlanned(action.NewPodChange(pod, metav1.Time{}))
	if !u.needsAgent && u.scope.Resources.Len() == 0 && pending(before) == nil && !before.Unreadable() && unrecorded(before, pod, u.template, u.options).Len() == 0 {
		return nil
	}
	ch, _, _ := u.forPod(pod, before)
	if err := checkResizes(ch, pod, u.options); err != nil {
		return err
	}
	return checkAgent(ch, pod)
}

// checkResizes reports whether the node can be asked to carry the resizes out.
func checkResizes(ch record.Changes, pod *corev1.Pod, o Options) error {
	var s *record.State
	c := action.NewPodChange(pod, metav1.Time{})
	for _, name := range slices.Sorted(maps.Keys(ch.Resources)) {
		if path := o.LoweredLimit(running.Container(pod, name), ch.Resources[name]); path != "" {
			return diff.NotLowered("container " + name + ": resources." + path)
		}
		limit := raisesLimit(pod, name, ch.Resources[name])
		if limit == "" || running.Is(pod, name) {
			continue
		}
		if s == nil {
			s = record.Read(c).State
		}
		if isDown(s, c, name) {
			return &NotPossibleError{
				Path:    "container " + name + ": resources.limits." + string(limit),
				Message: "the limit cannot be raised while the container is not running: its next run would keep the old limit of the pod",
			}
		}
	}
	return nil
}

// checkAgent returns an error if the node agent cannot be asked for the restarts that it is to make.
func checkAgent(ch record.Changes, pod *corev1.Pod) error {
	byAgent := ch.ByAgent()
	if byAgent.Len() == 0 {
		return nil
	}
	if !podstate.HasReadinessGate(pod, contract.InPlaceUpdateReady) {
		return &NotPossibleError{
			Path:    "spec.readinessGates",
			Message: "the pod lacks readiness gate " + contract.InPlaceUpdateReady + ", so the node agent cannot restart its containers",
		}
	}
	for _, name := range sets.List(byAgent) {
		if _, known := agentreport.StartedWith(pod, name); !known && !agentreport.YetToStart(pod, name) {
			return missingAgent(pod, name)
		}
	}
	return nil
}

func missingAgent(pod *corev1.Pod, container string) *NodeAgentMissingError {
	e := &NodeAgentMissingError{Container: container}
	if s := running.Status(pod, container); s != nil && s.State.Running != nil {
		e.StartedAt = s.State.Running.StartedAt.Time
	}
	return e
}

// Interrupts reports whether the update stops a container of this pod. One that does not, a change of
// plain metadata or a resize without restart, leaves the pod in service all the time: it needs no
// grace and no state Updating. While an earlier update holds the pod out of service, it does
// interrupt: the pod has yet to come back.
func (u *Update) Interrupts(pod *corev1.Pod) bool {
	c := action.NewPodChange(pod, metav1.Time{})
	before := record.Read(c)
	ch, _, resized := u.forPod(pod, before)
	if ch.Interrupt(pod) || completion.RestartsToCome(pod, resized) || podstate.HeldByUpdate(pod) {
		return true
	}
	if before.State == nil {
		return false
	}
	a := completion.Of(c, before.State, u.options)
	return len(a.Images)+len(a.Env) > 0
}

// Begin writes the start of the update: the pod out of service if a container will stop, the state annotation, and the
// first batch. Of a pod that serves, and with a positive grace period, it writes only the plan for the batch. Refresh
// continues with it. The caller sets revision labels and lifecycle state on the same change.
//
// Pending changes of an earlier update are taken along, and changes that it has only planned are dropped: in the end
// the pod matches the template. The change must not hold a batch that Refresh has started.
func (u *Update) Begin(c *action.PodChange, graceSeconds int32) {
	before := record.Read(c)
	ch, plain, resized := u.forPod(c.Pod, before)
	s := &record.State{
		Revision:        u.revision,
		UpdateTimestamp: c.Now,
		SeenResizes:     seenResizes(c.Pod, u.revision),
	}
	way := takeOver(s, c, before, u.options).Union(resized)
	recordResized(s, c.Pod, resized)
	s.UpdateImages = s.UpdateImages || len(ch.Images) > 0
	s.UpdateEnvFromMetadata = s.UpdateEnvFromMetadata || len(ch.Metadata) > 0
	ch.Restarts = ch.Restarts.Difference(carryRestarts(s, before, ch.Restarts))
	way.Insert(slices.Collect(maps.Keys(s.Restarts))...)
	s.UpdateResources = s.UpdateResources || len(ch.Resources)+resized.Len() > 0
	first := divide(c, s, ch, way)
	if ch.Interrupt(c.Pod) && graceSeconds > 0 || first.interrupts(c.Pod) && unreadyIn(c) > 0 {
		writePlan(before, c, s, &record.Grace{Revision: u.revision, GraceSeconds: graceSeconds, MetadataPatch: plain.Patch()}, ch, way)
		return
	}
	record.RemoveGrace(c)
	plain.Write(c)
	first.start(c, s)
}

// Resize writes all resources that the update gives the pod, also the resources of later batches. It is for trying
// whether the server takes them.
func (u *Update) Resize(c *action.PodChange) {
	ch, _, _ := u.forPod(c.Pod, record.Read(c))
	resizes := record.NewChanges()
	resizes.Resources = ch.Resources
	resizes.Write(c)
}

// takeOver carries over the changes that an earlier update has written and that are not done, and returns the
// containers concerned.
func takeOver(s *record.State, c *action.PodChange, before record.Prior, o Options) sets.Set[string] {
	earlier := before.State
	if earlier == nil {
		return nil
	}
	a := completion.Of(c, earlier, o)
	for _, name := range a.Images {
		if s.LastContainerStatuses == nil {
			s.LastContainerStatuses = map[string]record.ContainerStatus{}
		}
		s.LastContainerStatuses[name] = earlier.LastContainerStatuses[name]
	}
	s.UpdateImages = len(a.Images) > 0
	s.UpdateEnvFromMetadata = len(a.Env) > 0
	s.UpdateResources = len(a.Resources) > 0
	for _, name := range earlier.RaisedLimits {
		if mayLackLimits(earlier, c, name) {
			s.RaisedLimits = append(s.RaisedLimits, name)
		}
	}
	return a.Containers()
}

// forPod has the changes of the update on the pod. In addition, it names the containers with a resize that is written
// but not done: a resize goes ahead of the state that records it, and may have been the last write before a crash or a
// conflict.
func (u *Update) forPod(pod *corev1.Pod, before record.Prior) (record.Changes, record.Plain, sets.Set[string]) {
	s := u.scope
	if pending := pending(before); pending != nil {
		s = s.Union(*pending)
	}
	if before.WasToAskOtherwise(u.template) && hasAskedFor(pod, u.template) {
		s.Restarts = sets.KeySet(before.Owed(pod))
	}
	if before.Unreadable() {
		s = s.WithAll(u.template)
	}
	if lost := unrecorded(before, pod, u.template, u.options); u.options.Resize && lost.Len() > 0 {
		s.Resources = s.Resources.Union(lost)
	}
	ch := record.NewChanges()
	for _, c := range podspec.LongRunning(&u.template.Spec) {
		if s.Images.Has(c.Name) {
			ch.Images[c.Name] = c.Image
		}
		if s.Resources.Has(c.Name) {
			ch.Resources[c.Name] = quantity.Effective(c.Resources)
		}
	}
	ch.Restarts = s.Restarts.Intersection(u.restarts())
	plain := record.Plain{Finalizers: s.AddFinalizers, DeleteFinalizers: s.RemoveFinalizers}
	u.sortKeys(&ch, &plain, agentreport.FieldLabels, s.Labels, u.template.Labels)
	u.sortKeys(&ch, &plain, agentreport.FieldAnnotations, s.Annotations, u.template.Annotations)
	plain.Labels = record.Differing(pod.Labels, plain.Labels)
	plain.Annotations = record.Differing(pod.Annotations, plain.Annotations)
	ch = ch.MissingOn(pod)
	if before.Unreadable() { // unknown values are not asked for: they could block the pod permanently
		maps.DeleteFunc(ch.Metadata, func(name string, m record.Metadata) bool {
			_, known := agentreport.StartedWith(pod, name)
			return !known && m.MissingOn(pod).Empty()
		})
	}
	return ch, plain, completion.ResizedBefore(pod, s.Resources, ch)
}

// sortKeys separates keys that a container's environment reads from plain metadata.
func (u *Update) sortKeys(ch *record.Changes, plain *record.Plain, field string, keys sets.Set[string], values map[string]string) {
	for key := range keys {
		var value *string
		if text, ok := values[key]; ok {
			value = &text
		}
		read := false
		for _, c := range podspec.LongRunning(&u.template.Spec) {
			if u.options.EnvFromMetadata && agentreport.Reads(c, field, key) {
				m := ch.Metadata[c.Name]
				m.Set(field, key, value)
				ch.Metadata[c.Name] = m
				read = true
			}
		}
		if !read {
			plain.Set(field, key, value)
		}
	}
}
