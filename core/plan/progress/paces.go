package progress

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"
)

// Paces remembers, of steps that were left to the next pass, how many actions they had under way: a slow start need not
// begin again with each pass. A failure is a reason to begin again, and so is an edit of the workload. The zero value
// remembers nothing. It is safe for concurrent use by passes over different workloads.
type Paces struct {
	steps memory.Objects[map[string]reached] // by name
}

// reached is how far a step came that was left to the next pass.
type reached struct {
	generation int64
	underWay   int
}

// Forget drops the paces of a workload that is gone.
func (p *Paces) Forget(workload types.NamespacedName) { p.steps.Forget(workload) }

// reached is how many actions the step had under way when it was left, 0 for another one.
func (p *Paces) reached(workload memory.Key, generation int64, step string) int {
	if p == nil {
		return 0
	}
	steps, _ := p.steps.Get(workload)
	if last := steps[step]; last.generation == generation {
		return last.underWay
	}
	return 0
}

// keep remembers how many actions the step had under way when it is left to the next pass, and forgets it where the step
// has ended or an action has failed.
func (p *Paces) keep(workload memory.Key, generation int64, step string, underWay int) {
	if p == nil {
		return
	}
	p.steps.Change(workload, func(before map[string]reached) (map[string]reached, bool) {
		steps := maps.Clone(before) // another pass may read it
		if steps == nil {
			steps = map[string]reached{}
		}
		steps[step] = reached{generation: generation, underWay: underWay}
		if underWay == 0 {
			delete(steps, step)
		}
		return steps, len(steps) > 0
	})
}
