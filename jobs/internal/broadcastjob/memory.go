package broadcastjob

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// memory remembers what nodes are to jobs, so that an event of one node costs the evaluation of one node. It is safe for
// concurrent use.
type memory struct {
	verdicts eligibility.Memory

	mu   sync.Mutex
	uids map[types.NamespacedName]types.UID // of the jobs that have verdicts
}

func newMemory() *memory {
	return &memory{verdicts: eligibility.Memory{Rules: eligibility.ForJobs}, uids: map[types.NamespacedName]types.UID{}}
}

// of returns the verdicts, from which an earlier job of the same name is gone.
func (m *memory) of(job *v1beta1.BroadcastJob) *eligibility.Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(job)
	if last, ok := m.uids[key]; ok && last != job.UID {
		m.verdicts.Forget(last)
	}
	m.uids[key] = job.UID
	return &m.verdicts
}

// Template is the compiled template of a job.
func (m *memory) Template(job *v1beta1.BroadcastJob) *eligibility.Template {
	return m.of(job).Template(job, &job.Spec.Template)
}

// Verdicts are those on the nodes, in their order.
func (m *memory) Verdicts(job *v1beta1.BroadcastJob, all []*corev1.Node) []eligibility.Verdict {
	return m.of(job).Verdicts(job, &job.Spec.Template, all)
}

// Forget implements base.Memory.
func (m *memory) Forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if uid, ok := m.uids[name]; ok {
		m.verdicts.Forget(uid)
		delete(m.uids, name)
	}
}
