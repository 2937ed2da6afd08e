package action

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Verb is the kind of write of an action. The set is closed.
type Verb string

// The verbs. All but Create and Delete are patches and differ only in their purpose.
const (
	Create        Verb = "Create"        // make Object, after its Prerequisites
	Delete        Verb = "Delete"        // delete Object, then its Dependents
	Adopt         Verb = "Adopt"         // take ownership of Object
	Release       Verb = "Release"       // give up ownership of Object
	PatchMetadata Verb = "PatchMetadata" // change labels, annotations, finalizers
	PatchStatus   Verb = "PatchStatus"   // change conditions, with labels and annotations that ride along
	PatchSpec     Verb = "PatchSpec"     // change the spec
	UpdateInPlace Verb = "UpdateInPlace" // move a pod towards another revision without recreating it
)

// Guard is a precondition that neither a cache nor a plan can know: the server is asked right before the write.
type Guard string

// Unmounted means that no pod mounts the claim, terminating ones aside. A claim that is deleted while a pod mounts it is
// lost as soon as that pod ends.
const Unmounted Guard = "Unmounted"

// Action is one intended change of one object. Everything it carries is read-only.
type Action struct {
	// Verb is the kind of write.
	Verb Verb
	// Object is the object to create or, for all other verbs, the object as the snapshot has it: its UID and
	// resourceVersion are the preconditions of the write.
	Object Object
	// Prerequisites are objects that are created before Object unless they exist.
	Prerequisites []Object
	// Dependents are claims that are deleted after Object, each under guard Unmounted.
	Dependents []Object
	// Guard is the precondition that the server is asked about right before the write. Admit gives one to every deletion of
	// a claim.
	Guard Guard
	// ForPod is the pod that a claim is released to and goes with. For guard Unmounted that pod does not count.
	ForPod types.UID
	// Propagation decides about the objects that Object owns when it is deleted; empty leaves the choice to the server,
	// which orphans the pods of a Job.
	Propagation metav1.DeletionPropagation
	// Patches are written in order. Each but the first is based on the version that the write
	// before it returned; a refused one ends the action.
	Patches []Patch
	// Reason is one word for machines, such as "ScaleUp".
	Reason string
	// Message is one sentence for people.
	Message string
	// Revision is the short hash of the revision that an update in place brings the pod towards; empty for other actions.
	Revision string
	// Event is sent to the user once the action has succeeded or failed. Nil sends none.
	Event *Event
	// Deadline is when an assumption of the plan ends by time alone, such as that a pod is not available yet: an action
	// that has not begun by then does not begin. Zero means no deadline.
	Deadline time.Time
	// GeneratedName is true if the name of an Object to be created is random: until the object exists the name means
	// nothing.
	GeneratedName bool
	// LaterPatches are patches that follow once time has passed. The action does not write them.
	LaterPatches []Patch
	// Independent is true if nothing in the plan builds on the action, as on most writes to one pod: the steps after it run
	// whatever becomes of it. Later steps wait for all others.
	Independent bool
	// OutOfService is true if an update holds the pod out of service already. A disruption budget that refuses the action
	// does so too late.
	OutOfService bool
	// DryRun sends the writes that could be refused too late as server-side dry runs before anything is written: the
	// Object of a create that has Prerequisites, all patches but the first, and LaterPatches. If a dry run is refused, so
	// is the action. So are actions of a purpose that was refused; a plan may want it of others.
	DryRun bool
	// RefusedBefore is true if the server has refused the action before.
	RefusedBefore bool
	// DryRunAll extends DryRun to the first patch.
	DryRunAll bool
	// Held is true if the action is not to be tried, since its rule has given its place to others: Admit leaves it out, and
	// explains it if it was refused. Nothing builds on it.
	Held bool

	waitsBefore int // how many waits the plan had when it was put into its step, plus one; 0 for those of the step
}

// DryRunPatches returns the patches that are sent as dry runs first.
func (a *Action) DryRunPatches() []Patch {
	if len(a.Patches) == 0 {
		return nil
	}
	first := 1
	if a.DryRunAll {
		first = 0
	}
	return slices.Concat(a.Patches[first:], a.LaterPatches)
}

// WritesSpec reports whether a patch of the action, or a later one, changes the spec of the object.
func (a *Action) WritesSpec() bool {
	return slices.ContainsFunc(slices.Concat(a.Patches, a.LaterPatches), func(p Patch) bool { return p.Body["spec"] != nil })
}

// Expired reports whether the deadline has passed, so that the action must not begin.
func (a *Action) Expired(now time.Time) bool { return !a.Deadline.IsZero() && !now.Before(a.Deadline) }

// Patch is one write to an object.
type Patch struct {
	// Subresource is "", "status" or "resize".
	Subresource string
	// Type is the patch type; empty means strategic merge.
	Type types.PatchType
	// Body is the patch without resourceVersion and UID, which the writer adds to its metadata.
	Body map[string]any
	// FieldManager is the manager of the changed fields in metadata.managedFields; empty leaves it to the server, which
	// names the operator.
	FieldManager string
	// AnyVersion is true if the write is right at every version of the same object: only the UID is then a precondition.
	AnyVersion bool
}

// Event is the pair of events of an action on the owner: one for its success, one for its failure.
type Event struct {
	// Succeeded is the reason of the Normal event after success; empty sends none.
	Succeeded string
	// Note is the text of the Normal event.
	Note string
	// Failed is the reason of the Warning event after a failure; empty sends none.
	Failed string
	// FailedNote begins the text of the Warning event; the error follows.
	FailedNote string
}

// Step is a list of actions that do not depend on each other. They may run at the same time.
type Step struct {
	// Name is the purpose of the step, such as "scale up".
	Name string
	// First is true if the step runs before the others and builds on none of them: their refusals do not delay it.
	First bool
	// Actions are in order of preference: where not all can be tried, the first ones are.
	Actions []Action
	// SlowStart begins with one action under way, allows one more with each success, and stops after a failure.
	SlowStart bool
	// Apart is true if the steps after this one need not wait for all of it: where time is short, they get half of it.
	Apart bool
	// Optional is true if no other step builds on this one: the steps after it run whatever becomes of it.
	Optional bool
	// More is true if more such actions are wanted than the step has: the next pass continues with them at once.
	More bool

	waitsBefore int // how many waits the plan had when the step was added
}

// MaxCreates is how many creates a step has at most: more than a pass has time for, so that a plan for thousands of
// pods costs no more than the pods that one pass creates.
const MaxCreates = 200

// Wait names an action that did not happen, the cause, and the object that blocks it.
type Wait struct {
	// Reason is one word for machines, such as "MaxUnavailable".
	Reason string
	// Message is one sentence for people.
	Message string
	// Object is the object that blocks the action, such as the name of a pod; it may be empty.
	Object string
}

// Notice is an event that a plan sends in addition to the events of its actions.
type Notice struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is one word for machines.
	Reason string
	// Action is one word for machines that names the attempted action; empty for none.
	Action string
	// Note is the text.
	Note string
	// Related is the second object that the event is about, after the owner; it may be nil.
	Related Object
	// WithStatus is true if the plan wants the notice until the status shows the same: it is sent once that status is
	// written.
	WithStatus bool
}

// Plan lists the writes that one pass over one object wants. Rules add to it, and ask what of it may be tried; that
// question changes nothing. Admit then makes of it the plan that is executed.
type Plan struct {
	// Steps run in order; a step with a failure ends the plan.
	Steps []Step
	// Waits are the reasons why there is not more to do now.
	Waits []Wait
	// Notices are sent once the steps have run.
	Notices []Notice
	// RequeueAfter asks for another pass after this time; 0 waits for the next event.
	RequeueAfter time.Duration

	// Refusals are the writes that the server has refused before, and Now is the moment of the pass; both are given.
	Refusals Refusals
	Now      time.Time
	// RefusedVerbs are the verbs of refused actions in the workload's status, perhaps refused to an earlier process: such
	// actions are sent as dry runs first. They are given.
	RefusedVerbs []Verb
	// Deferred are the actions that Admit has left out because of Refusals.
	Deferred []DeferredAction

	admitted bool
}

// Add appends a step, unless it has no actions.
func (p *Plan) Add(s Step) {
	if len(s.Actions) == 0 {
		return
	}
	if len(p.Refusals) > 0 {
		s.waitsBefore = len(p.Waits)
	}
	p.Steps = append(p.Steps, s)
}

// AddFirst adds a step that runs before the others and builds on none of them.
func (p *Plan) AddFirst(s Step) {
	s.First = true
	p.Add(s)
}

// Put appends an action to a step that is to be added later. If the action was refused before, the reason stands among
// the waits where it was put.
func (p *Plan) Put(s *Step, a Action) {
	if len(p.Refusals) > 0 {
		a.waitsBefore = len(p.Waits) + 1
	}
	s.Actions = append(s.Actions, a)
}

// Hold puts an action into a step that is to be added later, only to have it explained if it was refused: it is not
// tried, since it has given its place to others, or its turn has not come.
func (p *Plan) Hold(s *Step, a Action) {
	if len(p.Refusals) == 0 {
		return
	}
	a.Held = true
	p.Put(s, a)
}

// Wait appends a reason for waiting.
func (p *Plan) Wait(reason, object, format string, args ...any) {
	p.Waits = append(p.Waits, Wait{
		Reason:  reason,
		Object:  object,
		Message: fmt.Sprintf(format, args...),
	})
}

// RequeueWithin asks for another pass after d at the latest. Durations of zero or less are ignored. A question that has
// another answer later asks for that pass; it changes nothing else.
func (p *Plan) RequeueWithin(d time.Duration) {
	if d > 0 && (p.RequeueAfter == 0 || d < p.RequeueAfter) {
		p.RequeueAfter = d
	}
}

// Count is the number of actions with the verb, over all steps.
func (p *Plan) Count(v Verb) int {
	n := 0
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			if a.Verb == v {
				n++
			}
		}
	}
	return n
}

// NoticesToRecord are the notices for users, without the notices of a status that is not written.
func (p *Plan) NoticesToRecord(statusWritten bool) []Notice {
	return slices.DeleteFunc(slices.Clone(p.Notices), func(n Notice) bool { return n.WithStatus && !statusWritten })
}

// String is the plan as text, one line for each action and each wait.
func (p *Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%s:\n", s.Name)
		for _, a := range s.Actions {
			fmt.Fprintf(&b, "  %s\n", a)
		}
		if s.More {
			b.WriteString("  and more in the next pass\n")
		}
	}
	for _, w := range p.Waits {
		fmt.Fprintf(&b, "wait: %s\n", w)
	}
	if p.RequeueAfter > 0 {
		fmt.Fprintf(&b, "wake after %s\n", p.RequeueAfter)
	}
	return b.String()
}

// String is the action in one line.
func (a Action) String() string {
	text := fmt.Sprintf("%s %s %s", a.Verb, kindOf(a.Object), a.Object.GetName())
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// String is the wait in one line.
func (w Wait) String() string {
	if w.Object == "" {
		return w.Reason + ": " + w.Message
	}
	return w.Reason + " " + w.Object + ": " + w.Message
}

// kindOfClaim is the kind of a claim in texts and purposes.
const kindOfClaim = "claim"

func kindOf(o Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "pod"
	case *corev1.PersistentVolumeClaim:
		return kindOfClaim
	}
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return strings.ToLower(kind)
	}
	name := fmt.Sprintf("%T", o)
	return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
}
