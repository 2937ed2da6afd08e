package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHeldActionsLeaveThePlan(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	on := func(o Object, verb Verb) Action {
		_, isPod := o.(*corev1.Pod)
		return Action{Verb: verb, Object: o, Independent: isPod, Patches: []Patch{{}, {}}}
	}
	pod, other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}
	refused := func(a Action) Refusals {
		return Refusals{a.Purpose(): {Told: Told{Message: "no"}, Targets: map[string]Refusal{a.Target(): {Until: now.Add(time.Minute)}}}}
	}
	patch, patchOther := on(pod, UpdateInPlace), on(other, UpdateInPlace)

	p := Plan{Now: now, Refusals: refused(patch)}
	p.Add(Step{Name: "update", Actions: []Action{patch, patchOther}})
	p = Admit(p)
	assert.Equal(t, "update:\n  UpdateInPlace pod b\nwait: Refused a: no\nwake after 1m0s\n", p.String(), "others go on")
	assert.True(t, p.Steps[0].Actions[0].DryRun, "but are rehearsed")
	assert.Equal(t, []DeferredAction{{UpdateInPlace, Told{Message: "no"}}}, p.Deferred)

	p = Plan{Now: now, Refusals: refused(on(claim, PatchMetadata))}
	p.Add(Step{Name: "claims", Actions: []Action{on(claim, PatchMetadata)}})
	p.Add(Step{Name: "update", Actions: []Action{patch}})
	assert.True(t, p.Empty(), "what comes after may build on it")
	p.AddFirst(Step{Name: "refresh", Actions: []Action{patch}})
	p.Add(Step{Name: "update", Actions: []Action{patch}})
	p = Admit(p)
	assert.Equal(t, "refresh:\n  UpdateInPlace pod a\nwait: Refused c: no\nwake after 1m0s\n", p.String(), "but for what builds on nothing")

	both := refused(on(claim, PatchMetadata))
	both[patch.Purpose()] = refused(patch)[patch.Purpose()]
	p = Plan{Now: now, Refusals: both}
	p.Add(Step{Name: "claims", Actions: []Action{on(claim, PatchMetadata)}})
	p.Add(Step{Name: "update", Actions: []Action{patch}})
	p = Admit(p)
	assert.Len(t, p.Deferred, 2, "what comes after is still refused, too")

	p = Plan{Now: now, Refusals: refused(on(claim, Delete))}
	p.Add(Step{Name: "claims", Actions: []Action{on(claim, Delete)}})
	p.Add(Step{Name: "update", Actions: []Action{patch}})
	p = Admit(p)
	assert.Len(t, p.Steps, 1, "nothing builds on a deletion")

	p = Plan{Now: now, Refusals: Refusals{patch.Purpose(): {Probing: true, OnlyByBudget: true, Told: Told{Message: "full", ByBudget: true}}}}
	p.Add(Step{Name: "update", Actions: []Action{patch, patchOther}})
	p = Admit(p)
	assert.Equal(t, "update:\n  UpdateInPlace pod a\nwait: BlockedByBudget a: full\nwait: BlockedByBudget b: full\nwake after 1s\n", p.String(), "one asks a budget for all")
	assert.False(t, p.Steps[0].Actions[0].DryRun, "with the write itself")

	p = Plan{Now: now, Refusals: Refusals{patch.Purpose(): {Probing: true, Told: Told{Message: "too much", NodeTooSmall: true}}}}
	p.Add(Step{Name: "update", Actions: []Action{patch}})
	p = Admit(p)
	assert.Equal(t, "update:\n  UpdateInPlace pod a\nwait: NodeTooSmall a: too much\n", p.String())
	assert.Equal(t, Failures{UpdateError: "too much", NodeTooSmall: true}, Failures{}.WithDeferred(p.Deferred))

	p = Plan{Now: now, RefusedVerbs: []Verb{UpdateInPlace}}
	p.Add(Step{Name: "update", Actions: []Action{patch, on(pod, PatchStatus)}})
	p = Admit(p)
	assert.True(t, p.Steps[0].Actions[0].DryRun)
	assert.False(t, p.Steps[0].Actions[1].DryRun)
}

// A pod that leaves service by a write without an answer, whatever for, does not leave before a dry run is answered.
func TestWritesAfterOneWithoutAnswerAreRehearsed(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b"}}
	known := Refusals{{Verb: UpdateInPlace, Kind: "pod", Reason: "Refresh"}: {Targets: map[string]Refusal{"a": {MayHaveSucceeded: true}}}}
	for name, c := range map[string]struct {
		action    Action
		rehearsed int
	}{
		"for another purpose": {Action{Verb: UpdateInPlace, Reason: "Update", Object: pod, Patches: []Patch{{}, {}}}, 2},
		"what follows later":  {Action{Verb: UpdateInPlace, Reason: "Update", Object: pod, Patches: []Patch{{}}, LaterPatches: []Patch{{}}}, 2},
		"nothing follows":     {Action{Verb: PatchStatus, Reason: "Serve", Object: pod, Patches: []Patch{{}}}, 0},
		"another object":      {Action{Verb: UpdateInPlace, Reason: "Update", Object: other, Patches: []Patch{{}, {}}}, 0},
		"for this purpose":    {Action{Verb: UpdateInPlace, Reason: "Refresh", Object: pod, Patches: []Patch{{}}}, 1},
	} {
		p := Plan{Refusals: known}
		p.Add(Step{Actions: []Action{c.action}})
		p = Admit(p)
		a := p.Steps[0].Actions[0]
		assert.Equal(t, c.rehearsed > 0, a.DryRun, name)
		if a.DryRun {
			assert.Len(t, a.DryRunPatches(), c.rehearsed, name)
		}
	}
}

// A pod whose containers were refused does not leave service for the next revision before a dry run is answered.
func TestWritesToAnObjectOfWhichOneWasRefusedAreRehearsed(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "b"}}
	begin := func(verb Verb, pod *corev1.Pod) Action {
		return Action{Verb: verb, Reason: "Update", Object: pod, Patches: []Patch{{}}, LaterPatches: []Patch{{}}}
	}
	for name, c := range map[string]struct {
		refusal   Refusal
		action    Action
		rehearsed bool
	}{
		"refused":         {Refusal{}, begin(UpdateInPlace, pod), true},
		"another pod":     {Refusal{}, begin(UpdateInPlace, other), false},
		"another verb":    {Refusal{}, begin(PatchStatus, pod), false},
		"a conflict":      {Refusal{Transient: true}, begin(UpdateInPlace, pod), false},
		"a budget's turn": {Refusal{ByBudget: true}, begin(UpdateInPlace, pod), false},
	} {
		p := Plan{Refusals: Refusals{{Verb: UpdateInPlace, Kind: "pod", Reason: "Refresh"}: {Targets: map[string]Refusal{"a": c.refusal}}}}
		p.Add(Step{Actions: []Action{c.action}})
		p = Admit(p)
		assert.Equal(t, c.rehearsed, p.Steps[0].Actions[0].DryRun, name)
	}
}

// A plan that ends early keeps what the status tells, and tells of nothing that the last one did not.
func TestHoldUnreachedKeepsWhatIsTold(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	purpose := func(reason string) Purpose { return Purpose{Verb: UpdateInPlace, Kind: "pod", Reason: reason} }
	p := Plan{Now: now, Refusals: Refusals{
		purpose("Update"): {Told: Told{Message: "told"}, StillWanted: true}, purpose("Refresh"): {Told: Told{Message: "not told"}, StillWanted: true},
		purpose("Grace"): {Told: Told{Message: "told long ago"}}, purpose("Regret"): {StillWanted: true},
	}}
	p.DeferUnreached(func(message string) bool { return message != "not told" })
	assert.Equal(t, []DeferredAction{{UpdateInPlace, Told{Message: "told"}}}, p.Deferred)
}
