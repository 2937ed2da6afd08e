package broadcastjob

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// eligible remembers the verdicts of jobs on nodes, so that an event of one node costs the evaluation of one node. It
// is safe for concurrent use.
type eligible struct {
	verdicts eligibility.Memory
	jobs     memory.Objects[struct{}] // that have verdicts
}

func newEligible() *eligible {
	m := &eligible{verdicts: eligibility.Memory{Rules: eligibility.ForJobs}}
	m.jobs.Ended = func(job memory.Key, _ struct{}) { m.verdicts.Forget(job.UID) }
	return m
}

// of returns the verdicts, from which an earlier job of the same name is gone.
func (m *eligible) of(job *v1beta1.BroadcastJob) *eligibility.Memory {
	m.jobs.Set(memory.KeyOf(job), struct{}{})
	return &m.verdicts
}

// Template is the compiled template of a job.
func (m *eligible) Template(job *v1beta1.BroadcastJob) *eligibility.Template {
	return m.of(job).Template(job, &job.Spec.Template)
}

// Verdicts are those on the nodes, in their order.
func (m *eligible) Verdicts(job *v1beta1.BroadcastJob, all []*corev1.Node) []eligibility.Verdict {
	return m.of(job).Verdicts(job, &job.Spec.Template, all)
}

// Forget implements pass.Memory.
func (m *eligible) Forget(name types.NamespacedName) { m.jobs.Forget(name) }
