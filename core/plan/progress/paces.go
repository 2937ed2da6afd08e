package progress

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Paces remembers, of steps that were left to the next pass, how many actions they had under way: a slow start need not
// begin anew with each pass. A failure is a reason to begin anew, and so is an edit of the workload. The zero value
// remembers nothing. It is safe for concurrent use by passes over different workloads.
type Paces struct {
	mu    sync.Mutex
	steps map[types.NamespacedName]map[string]reached // by name
}

// reached is how far a step came that was left to the next pass.
type reached struct {
	generation int64
	underWay   int
}

// Forget drops what is remembered of a workload that is gone.
func (p *Paces) Forget(workload types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.steps, workload)
}

// reached is how many actions the step had under way when it was left, 0 for another one.
func (p *Paces) reached(workload types.NamespacedName, generation int64, step string) int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.steps[workload][step]; last.generation == generation {
		return last.underWay
	}
	return 0
}

// keep remembers how many actions the step had under way when it is left to the next pass, and forgets it where the step
// has ended or an action has failed.
func (p *Paces) keep(workload types.NamespacedName, generation int64, step string, underWay int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.steps[workload]
	switch {
	case underWay == 0:
		delete(all, step)
		if len(all) == 0 {
			delete(p.steps, workload)
		}
		return
	case p.steps == nil:
		p.steps = map[types.NamespacedName]map[string]reached{}
	}
	if all == nil {
		all = map[string]reached{}
		p.steps[workload] = all
	}
	all[step] = reached{generation: generation, underWay: underWay}
}
