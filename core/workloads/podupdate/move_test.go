package podupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func TestEachWayOfAPodIsOneMove(t *testing.T) {
	hooked := &workload.Lifecycle{InPlaceUpdate: hook}
	for name, c := range map[string]struct {
		policy    Policy
		lifecycle *workload.Lifecycle
		target    int
		pod       []gen.PodOption
		refused   bool
		want      Move
		written   int
		wait      string
	}{
		"another image":                  {policy: InPlaceIfPossible, target: 1, want: MoveUpdates, written: 1},
		"another image, refused":         {policy: InPlaceIfPossible, target: 1, refused: true, want: MoveDeferred},
		"another image, a hook holds it": {policy: InPlaceIfPossible, lifecycle: hooked, target: 1, pod: []gen.PodOption{gen.Label("hook", "on")}, want: MovePrepares, written: 1},
		"a hook holds it already": {
			policy: InPlaceIfPossible, lifecycle: hooked, target: 1,
			pod: []gen.PodOption{gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingUpdate)}, want: MoveHeld,
		},
		"other ports":                     {policy: InPlaceIfPossible, target: 2, want: MoveNeedsNewPod},
		"other ports, never by a new pod": {policy: InPlaceOnly, target: 2, want: MoveWaits, wait: WaitNotInPlace},
	} {
		t.Run(name, func(t *testing.T) {
			g := givenWorkload(t, c.policy, c.lifecycle)
			o := g.pod(t, c.pod...)
			g.plan.Now = now
			target := g.revisions[c.target]
			u, err := g.UpdatePath(o, target)
			if c.refused {
				next := g.UpdateInPlace(o, u, target)
				g.plan.Refusals = action.Refusals{next.Purpose(): {
					Until:   now.Add(time.Minute),
					Told:    action.Told{Message: "no"},
					Targets: map[string]action.Refusal{next.Target(): {Revision: next.Revision}},
				}}
			}
			step := action.Step{Name: "update"}
			assert.Equal(t, c.want, g.Move(&step, o, target, u, err))
			written := 0
			for _, a := range step.Actions {
				if !a.Held {
					written++
				}
			}
			assert.Equal(t, c.written, written)
			var waits []string
			for _, w := range g.plan.Waits {
				waits = append(waits, w.Reason)
			}
			if c.wait == "" {
				assert.Empty(t, waits)
				return
			}
			assert.Equal(t, []string{c.wait}, waits)
		})
	}
}
