package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// request is a disruption on its way through the API server.
type request struct {
	pod     *corev1.Pod
	op      v1beta1.PubOperation
	replica int
	granted bool      // it was recorded, or needs no record
	at      time.Time // when it is carried out
	ends    time.Time // when the API server gives it up
}

// isFree reports whether the budget has no say in the request.
func (w *world) isFree(r *request) bool {
	return disruption.IsExempt(r.pod) || !disruption.Protects(w.budget(), r.op, true)
}

// carryOut does what was granted.
func (w *world) carryOut(r *request) {
	p, ok := w.pods[r.pod.Name]
	if !ok || p.UID != r.pod.UID || p.DeletionTimestamp != nil {
		return
	}
	if r.op == del || r.op == evict {
		p.next, p.known, p.restarts = w.now.Add(w.upTo(30)), time.Time{}, time.Time{}
		w.set(p, gen.Terminating())
		return
	}
	if r.op == resize {
		if p.restarts.IsZero() {
			p.known = w.now.Add(w.upTo(10))
		}
		w.set(p, func(pod *corev1.Pod) { pod.Generation++ })
		return
	}
	if disruption.StatusOf(p.Pod, corev1.PodReady) == "True" && p.restarts.IsZero() {
		p.known = w.now.Add(w.upTo(40))
		p.restarts = p.known.Add(w.upTo(30))
	}
	w.set(p, func(pod *corev1.Pod) {
		pod.Generation++
		pod.Spec.Containers[0].Image = fmt.Sprint("app:", pod.Generation)
	})
}

// ask lets a replica of the webhook handle a request, one step at a time.
func (w *world) ask(r *request) (done bool) {
	version := w.webhooks[r.replica]
	p, ok := w.pods[r.pod.Name]
	if !ok || p.UID != r.pod.UID {
		return true
	}
	r.pod = p.Pod // admission sees what the server has
	key, recorded := string(r.op)+string(r.pod.UID)+r.version(), w.recorded[r.replica]
	at, known := recorded[key]
	v := disruption.Decide(w.versions[version], disruption.Request{
		Pod: r.pod, Operation: r.op, ResizeApart: true, Recorded: known && w.now.Sub(at) < disruption.FreshFor, Now: w.now.Add(w.skews[r.replica]),
	})
	switch {
	case v.Refused != "":
		w.wronged = w.wronged || !disruption.IsProtected(r.pod) || w.isFree(r) || v.Next != nil || v.Confirm
		return true
	case v.Next == nil:
		if w.isFree(r) && r.op != resize {
			if r.op == evict && w.rand.IntN(2) == 0 {
				return true // a PodDisruptionBudget refuses it
			}
			p.failed = true // nobody promises anything of it
		}
		if disruption.IsProtected(r.pod) && !w.isFree(r) && w.rand.IntN(2) == 0 { // others take their time to say yes
			r.granted, r.at = true, w.now.Add(w.upTo(slowest))
			return false
		}
		w.carryOut(r)
		return true
	case !w.write(version, v.Next):
		w.webhooks[r.replica] = len(w.versions) - 1 // a conflict: it reads anew
		return false
	case !w.calm && w.rand.IntN(8) == 0:
		return true // the answer got lost, or the replica died: nothing is carried out
	}
	recorded[key] = w.now
	if w.rand.IntN(2) == 0 {
		w.webhooks[r.replica] = len(w.versions) - 1
	}
	r.granted, r.at = true, w.now.Add(w.upTo(slowest))
	return false
}

// goOn has the API server go on with a request, and reports whether it is done: carried out, given up, or refused by others
// such as a PodDisruptionBudget, after which a drain asks again. What was granted for one version of a pod is not carried out
// on another one, but asked for anew.
func (w *world) goOn(r *request) (done bool) {
	switch p := w.pods[r.pod.Name]; {
	case !w.now.Before(r.ends):
		return true
	case !r.granted || w.now.Before(r.at):
		return false
	case r.version() != "" && p != nil && p.ResourceVersion != r.version():
		r.granted = false
		return false
	case !w.calm && w.rand.IntN(4) == 0:
		r.granted, r.ends = false, w.now.Add(requestTimeout)
		return w.rand.IntN(4) == 0
	}
	w.carryOut(r)
	return true
}

// version returns the version of the pod on which the request is carried out, empty for an eviction: any.
func (r *request) version() string {
	if r.op == evict {
		return ""
	}
	return r.pod.ResourceVersion
}
