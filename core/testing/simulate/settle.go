package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

const (
	// sweepLimit bounds the passes of every run of a sweep.
	sweepLimit = 5000
	// quietWakes is after how many wakes in a row without a write a quiet world counts as settled.
	quietWakes = 20
)

// Settle runs passes until nothing is left to do and nothing will happen, then looks again with an empty memory, a
// minute and a day later, and requires that nothing is written any more. It fails if that takes more than limit passes,
// if an invariant of the world was violated, or if a write changed nothing.
func (o *Operator) Settle(limit int) error {
	idle := 0
	for range limit {
		out, wake := o.Pass()
		if v := o.world.Violations(); len(v) > 0 {
			return fmt.Errorf("violated:\n%s", strings.Join(v, "\n"))
		}
		switch {
		case out.Crashed:
			o.world.Tell("operator", "crash and restart")
			o.Restart()
			idle = 0
		case !out.Idle() || !o.world.Quiet():
			idle = 0
			o.wait(out, wake)
		case o.active() && o.faults.Foreign > 0: // more trouble is coming
			o.world.Advance(time.Second)
		case wake > 0 && idle < quietWakes:
			idle++
			o.world.Advance(wake)
		default:
			return o.proveSettled()
		}
	}
	return fmt.Errorf("not settled after %d passes and %d writes", limit, o.Writes())
}

// wait lets the world move on until the next pass: by some events, or up to the moment at which the
// planner wants to think again.
func (o *Operator) wait(out operator.Outcome, wake time.Duration) {
	if out.Failed > 0 {
		o.world.Advance(time.Second)
	}
	if len(o.faults.Refused) > 0 && out.Done > 0 { // time counts there, and its own writes bring it back, too
		if wake == 0 || wake > time.Second {
			wake = time.Second
		}
	}
	events := 1
	if !o.world.Options.Calm {
		events += o.rng.IntN(3)
	}
	for i := 0; i < events || o.roll(o.faults.LostEvents); i++ {
		if o.world.Quiet() {
			return
		}
		next, _ := o.world.Next()
		switch {
		case i > 0 && len(o.faults.Refused) > 0 && next.After(o.world.Now().Add(time.Second)): // time counts there
			return
		case wake > 0 && next.After(o.world.Now().Add(wake)):
			o.world.Advance(wake)
			return
		}
		o.world.Step()
	}
}

// proveSettled checks that the world stays settled in the future, and returns to the present.
func (o *Operator) proveSettled() error {
	if object := o.world.Mutated(); object != nil {
		return fmt.Errorf("the planner changed %s %s, which it may only read", cluster.KindOf(object), object.GetName())
	}
	for _, later := range []time.Duration{0, time.Minute, 24 * time.Hour} {
		var err error
		o.world.Later(later, func() { err = o.proveIdle() })
		if err != nil {
			return err
		}
	}
	return nil
}

// proveIdle checks that a new process wants to write nothing.
func (o *Operator) proveIdle() error {
	o.Restart()
	for _, step := range operator.Think(o.world.Cluster(), o.planner, o.rng.Uint64()) {
		for _, a := range step.Actions {
			if (a.Verb == action.Delete || a.ForPod != "") && o.world.MountingPod(a.Object, a.ForPod) != "" { // which would not be written
				continue
			}
			return fmt.Errorf("wants to write although it had settled: %s", a)
		}
	}
	return nil
}

// Settle runs the planner without faults until the world has settled; see Operator.Settle.
func Settle(t testing.TB, w *World, p operator.Planner, limit int) {
	t.Helper()
	SettleUnder(t, w, p, Faults{}, limit)
}

// SettleUnder is Settle under faults.
func SettleUnder(t testing.TB, w *World, p operator.Planner, f Faults, limit int) {
	t.Helper()
	if err := NewOperator(w, p, f).Settle(limit); err != nil {
		require.NoError(t, err, "the story:\n%s", w.Story())
	}
}

// CrashSweep plays the setup once without a fault and then once for every write on the way, with an operator that
// crashes right after that write. Every run must settle, pass the check, which may be nil, and end in the state in
// which the first run ended, as compared by Digest.
func CrashSweep(t testing.TB, setup func() (*World, operator.Planner), check func(*World)) {
	t.Helper()
	runs, err := sweepCrashes(setup, check)
	require.NoError(t, err)
	require.Positive(t, runs, "the setup writes nothing")
}

func sweepCrashes(setup func() (*World, operator.Planner), check func(*World)) (runs int, err error) {
	play := func(crash int) (string, int, error) {
		w, p := setup()
		o := NewOperator(w, p, Faults{CrashAfter: crash})
		if err := o.Settle(sweepLimit); err != nil {
			return "", 0, fmt.Errorf("crash after write %d: %w\nthe story:\n%s", crash, err, w.Story())
		}
		if check != nil {
			check(w)
		}
		return Digest(w), o.Writes(), nil
	}
	clean, writes, err := play(0)
	if err != nil {
		return 0, err
	}
	for k := 1; k <= writes; k++ {
		end, _, err := play(k)
		if err != nil {
			return k, err
		}
		if end != clean {
			return k, fmt.Errorf("crash after write %d: the end differs\nwithout crash:\n%s\nwith crash:\n%s", k, clean, end)
		}
	}
	return writes, nil
}

// Explore plays n worlds of the setup, each until it has settled under the faults that the setup gives, and
// calls check, which may be nil.
func Explore(t *testing.T, n int, setup func(seed uint64) (*World, operator.Planner, Faults), check func(testing.TB, *World)) {
	t.Helper()
	seeds.Each(t, n, func(t *testing.T, seed uint64) {
		t.Helper()
		w, p, f := setup(seed)
		if err := NewOperator(w, p, f).Settle(sweepLimit); err != nil {
			require.NoError(t, err, "the story:\n%s", w.Story())
		}
		if check != nil {
			check(t, w)
		}
	})
}
