package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
)

// AgentMissing reports whether the update of the pod waits for a node agent that does not come.
func AgentMissing(pod *corev1.Pod, now time.Time, o Options) bool {
	c := action.NewPodChange(pod, metav1.NewTime(now))
	if record.NothingUnderWay(c) {
		return false
	}
	before := record.Read(c)
	if before.State == nil || before.Grace != nil || before.Unreadable() {
		return false
	}
	p := completion.Of(c, before.State, o).First
	return p != nil && p.AgentMissing
}

// ServeAsIs puts a pod back into service if its update waits for a node agent that does not come. The record still
// names the containers to restart, so that the update is not taken for complete.
func ServeAsIs(c *action.PodChange, o Options) {
	before := record.Read(c)
	if before.State == nil || before.Grace != nil || before.Unreadable() {
		return
	}
	a := completion.Of(c, before.State, o)
	if len(a.Images) > 0 || record.IsInService(c) {
		return
	}
	if len(a.Env) > 0 {
		before.State.RecordRestarts(c.Pod, sets.New(a.Env...))
		record.WriteState(c, before.State)
	}
	putIntoService(c, false)
}
