package action

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// updateOf is the update of a pod of that name.
func updateOf(name string) Action {
	return Action{
		Verb: UpdateInPlace, Reason: "Update", Independent: true, Patches: []Patch{{}, {}},
		Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}},
	}
}

// refusedOnce is a purpose of which one is tried at a time, and the pauses of those that were refused.
func refusedOnce(now time.Time, pauses map[string]time.Duration) Refusals {
	known := RefusedPurpose{Probing: true, Told: Told{Message: "no"}, Targets: map[string]Refusal{}}
	for name, pause := range pauses {
		known.Targets[name] = Refusal{Until: now.Add(pause)}
	}
	a := updateOf("any")
	return Refusals{a.Purpose(): known}
}

// Whoever asks uses nothing up: the probe is the first action that a rule puts into the plan, not the first asked about.
func TestAQuestionChangesNothing(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Plan{Now: now, Refusals: refusedOnce(now, nil)}
	a, b := updateOf("a"), updateOf("b")
	before := p
	for range 3 {
		assert.True(t, p.MayTry(&a, nil))
		assert.True(t, p.MayTry(&b, nil), "nobody has wanted the other one yet")
		assert.False(t, p.YieldsPlace(&b, nil))
		assert.True(t, p.Empty())
		assert.False(t, p.WantsSince(0))
		assert.Zero(t, p.Tries("update"))
	}
	assert.Equal(t, before, p)

	step := Step{Name: "update"}
	assert.True(t, p.Try(&step, b))
	assert.False(t, p.MayTry(&a, &step), "the other one is the probe")
	assert.True(t, p.MayTry(&b, &step), "it is itself")
	assert.True(t, p.MayTry(&a, nil), "a step that nobody adds is no part of the plan")
	assert.False(t, p.Try(&step, a), "it yields its place, and is explained")
	p.Add(step)
	assert.False(t, p.MayTry(&a, nil))
	assert.Equal(t, 1, p.Tries("update"))
	assert.True(t, p.WantsSince(0))
	assert.False(t, p.WantsSince(1))
	p = Admit(p)
	assert.Equal(t, "update:\n  UpdateInPlace pod b (Update)\nwait: Refused b: no\nwait: Refused a: no\nwake after 1s\n", p.String())
	assert.Equal(t, p, Admit(p), "an admitted plan stays as it is")
}

// Admit makes a new plan: what the rules want stays as it was.
func TestAdmitLeavesTheWantedPlanAlone(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Plan{Now: now, Refusals: refusedOnce(now, map[string]time.Duration{"a": time.Minute})}
	p.Wait("MaxUnavailable", "c", "others are down")
	p.Add(Step{Name: "update", Actions: []Action{updateOf("a"), updateOf("b")}})
	before := p.String()
	admitted := Admit(p)
	assert.Equal(t, before, p.String())
	assert.False(t, p.Steps[0].Actions[1].DryRun)
	assert.True(t, admitted.Steps[0].Actions[0].DryRun)
	assert.Len(t, p.Waits, 1)
}

// The reason of a refused action stands where its rule has put it, among the rule's own.
func TestReasonsStandInTheOrderOfTheRules(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := Plan{Now: now, Refusals: refusedOnce(now, map[string]time.Duration{"a": time.Minute, "b": time.Hour, "c": time.Hour})}
	step := Step{Name: "update"}
	p.Hold(&step, updateOf("a"))
	p.Wait("MaxUnavailable", "d", "others are down")
	p.Put(&step, updateOf("b"))
	p.Wait("Hook", "e", "it holds")
	step.Actions = append(step.Actions, updateOf("c"))
	p.Add(step)
	p.Wait("Paused", "", "it is")
	p = Admit(p)
	assert.Equal(t, "wait: Refused a: no\nwait: MaxUnavailable d: others are down\nwait: Refused b: no\nwait: Hook e: it holds\n"+
		"wait: Refused c: no\nwait: Paused: it is\nwake after 1m0s\n", p.String())
	assert.Len(t, p.Deferred, 3)
}

// A held action is explained, and nothing builds on it.
func TestNothingWaitsForHeldActions(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	claim := Action{Verb: PatchSpec, Reason: "Resize", Object: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}}
	of := func(pause time.Duration, put func(*Plan, *Step)) Plan {
		p := Plan{Now: now, Refusals: Refusals{claim.Purpose(): {Told: Told{Message: "no"}, Targets: map[string]Refusal{"c": {Until: now.Add(pause)}}}}}
		step := Step{Name: "claims"}
		put(&p, &step)
		p.Add(step)
		p.Add(Step{Name: "update", Actions: []Action{updateOf("a")}})
		return Admit(p)
	}
	held := func(p *Plan, s *Step) { p.Hold(s, claim) }
	p := of(time.Minute, held)
	assert.Equal(t, "update:\n  UpdateInPlace pod a (Update)\nwait: Refused c: no\nwake after 1m0s\n", p.String())
	p = of(0, held)
	assert.Equal(t, "update:\n  UpdateInPlace pod a (Update)\nwait: Refused c: no\n", p.String(), "also while its turn has not come")
	p = of(time.Minute, func(p *Plan, s *Step) { p.Put(s, claim) })
	assert.Equal(t, "wait: Refused c: no\nwake after 1m0s\n", p.String())

	unknown := Plan{Now: now}
	step := Step{Name: "claims"}
	unknown.Hold(&step, claim)
	assert.Empty(t, step.Actions, "what was not refused has no reason")
}

// The steps after an action that waits wait, too, unless the action says that nothing builds on it.
func TestLaterStepsWaitForAllButIndependentActions(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		change func(*Action)
		wait   bool
	}{
		"any action":      {func(*Action) {}, true},
		"independent":     {func(a *Action) { a.Independent = true }, false},
		"a deletion":      {func(a *Action) { a.Verb = Delete }, false},
		"on a needed pod": {func(a *Action) { a.Object = updateOf("a").Object }, true},
	} {
		first := Action{Verb: PatchMetadata, Reason: "First", Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}}
		c.change(&first)
		p := Plan{Now: now, Refusals: Refusals{first.Purpose(): {Targets: map[string]Refusal{"a": {Until: now.Add(time.Minute)}}}}}
		p.Add(Step{Name: "first", Actions: []Action{first}})
		p.Add(Step{Name: "update", Actions: []Action{updateOf("b")}})
		assert.Equal(t, c.wait, len(Admit(p).Steps) == 0, name)
	}
}

// A rule that forgets the guard of a claim loses no data.
func TestNoClaimIsDeletedUnguarded(t *testing.T) {
	claim, pod := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, updateOf("a").Object
	p := Plan{}
	p.Add(Step{Actions: []Action{{Verb: Delete, Object: claim}, {Verb: Delete, Object: pod}, {Verb: Release, Object: claim}}})
	admitted := Admit(p).Steps[0].Actions
	assert.Equal(t, []Guard{Unmounted, "", ""}, []Guard{admitted[0].Guard, admitted[1].Guard, admitted[2].Guard})
	assert.Empty(t, p.Steps[0].Actions[0].Guard)
}
