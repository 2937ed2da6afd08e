package simulate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
)

// What quiet under refusal allows for one object in the way: at first, and a minute in the long run. An edit
// of the workload, a pod that becomes available, and an object that somebody takes away are worth another try.
const (
	retriesAtFirst   = 8
	retriesPerMinute = 2
	retriesPerCause  = 3
)

const (
	// recovery is how long after the end of refusals everything must have been tried again.
	recovery = time.Minute
	// maxOutOfService is how long a pod whose containers are ready may be kept out of service.
	maxOutOfService = 2 * time.Minute
)

// retryJudge is the judge of operators whose writes are refused: how many requests are refused and done, how many
// events are sent, how often and for how long a pod leaves service without being updated, and how soon after the end of
// the refusals everything is tried again.
type retryJudge struct {
	refused       []Refused
	tries         map[refusedWrite]*tally // that were refused
	writes        map[refusedWrite]*tally // that were done since anybody else did something
	events        map[eventKey]*tally
	flips         map[types.UID]*flip
	outTooLong    map[types.UID]bool      // pods that were too long out of service
	foreign       map[types.UID]time.Time // when a pod was last nobody's, or could not be adopted or released
	moved         map[types.UID]bool      // pods whose labels or owners somebody has changed and the operator has not since
	statusRefused time.Time               // when the server last let nobody write whether pods serve
	others        map[action.Purpose]bool // what fails for another reason than that it is refused
}

// refusedWrite is an object that cannot be written in one way. Objects to be created are all one.
type refusedWrite struct {
	kind string
	uid  types.UID
}

// tally counts what is to be rare.
type tally struct {
	begun     time.Time
	n, causes int
	names     map[string]bool // of the objects, where they are several
	purposes  int             // that are tried, each for itself, where they are several
}

// add counts one more. It returns how many there may be, and whether there are more.
func (t *tally) add(now time.Time) (most int, tooMany bool) {
	if t.n == 0 {
		t.begun = now
	}
	t.n++
	others, minutes := max(len(t.names)-1, 0), int(now.Sub(t.begun)/time.Minute)
	most = retriesAtFirst + retriesPerMinute*minutes*max(1+others, t.purposes) + retriesPerCause*(t.causes+others)
	return most, t.n > most
}

// tallyOf returns the tally of a key.
func tallyOf[K comparable](all map[K]*tally, key K) *tally {
	if all[key] == nil {
		all[key] = &tally{names: map[string]bool{}}
	}
	return all[key]
}

// flip is what is known of a pod that left service.
type flip struct {
	out     bool
	refused string         // the kind of request that was refused first since the pod is out, and the answer
	futile  map[string]int // turns in which nothing of the spec was written, by what was refused
}

func watchRetries(w *World, refused []Refused) *retryJudge {
	q := &retryJudge{
		refused: refused, tries: map[refusedWrite]*tally{}, writes: map[refusedWrite]*tally{}, events: map[eventKey]*tally{},
		flips: map[types.UID]*flip{}, outTooLong: map[types.UID]bool{}, foreign: map[types.UID]time.Time{}, moved: map[types.UID]bool{}, others: map[action.Purpose]bool{},
	}
	if len(refused) > 0 {
		w.OnEvent(q.watch)
	}
	for _, r := range refused {
		w.After(r.From, func() { w.Tell("server", "refuses to %s, with %d", r.Write, r.Code) })
		w.After(r.Until, func() { w.Tell("server", "takes %s again", r.Write) }) // wakes the operator like any other event
	}
	return q
}

// count counts a request that is refused with the status code.
func (q *retryJudge) count(w *World, r operator.Request, code int) {
	key := refusedWrite{kind: r.Kind, uid: r.Object.GetUID()}
	if f := q.flips[key.uid]; f != nil && f.out && f.refused == "" {
		f.refused = fmt.Sprintf("%s, with %d", r.Kind, code)
	}
	t := tallyOf(q.tries, key)
	if most, tooMany := t.add(w.Now()); tooMany {
		w.Violate("quiet under refusal: %s %s was refused %d times in %s, at most %d", r.Kind, r.Object.GetName(), t.n, w.Now().Sub(t.begun), most)
	}
}

// countEvent counts an Event. The name of the object that it is about is empty where it means nothing.
func (q *retryJudge) countEvent(w *World, e eventKey, name string) {
	if len(q.refused) == 0 {
		return
	}
	t := tallyOf(q.events, e)
	if name != "" {
		t.names[name] = true
	}
	if most, tooMany := t.add(w.Now()); tooMany {
		w.Violate("quiet under refusal: Event %s %s was told %d times in %s, at most %d", e.kind, e.reason, t.n, w.Now().Sub(t.begun), most)
	}
}

// watch follows what is written, pods in and out of service, and what is worth another try.
func (q *retryJudge) watch(w *World, e cluster.Event) {
	q.countDone(w, e)
	if e.Old != nil &&
		(!cluster.Same(e.Old.GetLabels(), e.Object.GetLabels()) || !cluster.Same(e.Old.GetOwnerReferences(), e.Object.GetOwnerReferences())) {
		q.moved[e.Object.GetUID()] = e.Actor != cluster.OperatorActor
		if e.Actor != cluster.OperatorActor {
			q.causeFor(e.Object.GetUID())
		}
	}
	pod, isPod := e.Object.(*corev1.Pod)
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case !isPod && cluster.PlainKind(e.Object) == "Workload":
		if e.Old == nil || e.Old.GetGeneration() != e.Object.GetGeneration() {
			q.cause()
		}
		return
	case !isPod || old == nil:
		return
	case cluster.IsTrue(pod, corev1.PodReady) && !cluster.IsTrue(old, corev1.PodReady):
		q.cause()
	}
	if e.Actor == cluster.OperatorActor {
		q.follow(w, old, pod)
	}
}

// countDone counts the writes that are done although nobody else does anything. What the operator itself does
// is worth another status of the workload, and nothing else.
func (q *retryJudge) countDone(w *World, e cluster.Event) {
	if e.Actor != cluster.OperatorActor {
		clear(q.writes)
		return
	}
	if t := q.tries[refusedWrite{kind: "create " + cluster.PlainKind(e.Object)}]; t != nil && e.Old == nil {
		t.causes++ // where some are created, the others are worth a try
	}
	key := refusedWrite{kind: cluster.PlainKind(e.Object), uid: e.Object.GetUID()}
	if key.kind != "Workload" {
		for other := range q.writes {
			if other.kind == "Workload" {
				delete(q.writes, other)
			}
		}
	}
	t := tallyOf(q.writes, key)
	t.purposes = len(q.others)
	if most, tooMany := t.add(w.Now()); tooMany {
		w.Violate("quiet under refusal: %s %s was written %d times in %s, at most %d", e.Kind, e.Object.GetName(), t.n, w.Now().Sub(t.begun), most)
	}
}

// follow follows a pod that the operator writes in and out of service.
func (q *retryJudge) follow(w *World, old, pod *corev1.Pod) {
	f := q.flips[pod.UID]
	if f == nil {
		f = &flip{futile: map[string]int{}}
		q.flips[pod.UID] = f
	}
	was, is := cluster.IsTrue(old, contract.InPlaceUpdateReady), cluster.IsTrue(pod, contract.InPlaceUpdateReady)
	switch {
	case !cluster.Same(old.Spec, pod.Spec): // whatever happens to it now, it has not left for nothing
		*f = flip{futile: map[string]int{}}
	case was && !is:
		f.out, f.refused = true, ""
	case !was && is && f.out:
		f.out = false
		if f.refused == "" {
			return
		}
		f.futile[f.refused]++ // each kind of request may be refused once in a way in which it was not refused before: a budget refuses no dry run
		if n := f.futile[f.refused]; n > 1 {
			w.Violate("quiet under refusal: pod %s left service %d times for nothing: the server refused to %s", pod.Name, n, f.refused)
		}
	}
}

// causeFor says that somebody else has changed whose the object is.
func (q *retryJudge) causeFor(uid types.UID) {
	for key, t := range q.tries {
		if key.uid == uid {
			t.causes++
		}
	}
	for e, t := range q.events {
		if e.about == string(uid) {
			t.causes++
		}
	}
}

func (q *retryJudge) cause() {
	for _, t := range q.tries {
		t.causes++
	}
	for _, t := range q.events {
		t.causes++
	}
}

// serve requires that no pod whose containers are ready is kept out of service, unless a hook holds it, the server
// refuses every write that would bring it back, or it has to be adopted first and cannot be, or has to be released.
func (q *retryJudge) serve(w *World, known action.Refusals) {
	for _, r := range q.refused {
		if r.covers("patch status of Pod", w.Now().Sub(w.Begin())) {
			q.statusRefused = w.Now()
			return
		}
	}
	adoption := action.Purpose{Verb: action.Adopt, Kind: "pod", Reason: "SelectorMatch"}
	release := action.Purpose{Verb: action.Release, Kind: "pod", Reason: "SelectorMismatch"}
	claims := action.Purpose{Verb: action.Release, Kind: "claim", Reason: "PodLeaving"} // before the pod
	for _, pod := range w.Pods() {
		stays := q.moved[pod.UID] && len(known[adoption].Targets)+len(known[claims].Targets) > 0
		_, goes := known[release].Targets[string(pod.UID)]
		if stays || goes || cluster.ControllerOf(pod) == "" {
			q.foreign[pod.UID] = w.Now()
		}
		c, running := podstate.Condition(pod, contract.InPlaceUpdateReady), podstate.Condition(pod, corev1.ContainersReady)
		if c == nil || c.Status != corev1.ConditionFalse || pod.DeletionTimestamp != nil || !cluster.IsTrue(pod, corev1.ContainersReady) || q.outTooLong[pod.UID] {
			continue
		}
		since := slices.MaxFunc([]time.Time{c.LastTransitionTime.Time, running.LastTransitionTime.Time, q.statusRefused, q.foreign[pod.UID]}, time.Time.Compare)
		if out := w.Now().Sub(since); out > maxOutOfService && lifecycle.State(pod) != contract.LifecyclePreparingDelete {
			q.outTooLong[pod.UID] = true
			w.Violate("quiet under refusal: pod %s is kept out of service for %s", pod.Name, out)
		}
	}
}

// checkRecovery requires that within the recovery time after the end of all refusals nothing waits because of them.
func (q *retryJudge) checkRecovery(o *Operator) {
	if len(q.refused) == 0 {
		return
	}
	all := o.Refusals()
	q.serve(o.world, all)
	end := o.world.Begin()
	for _, r := range q.refused {
		if at := o.world.Begin().Add(r.Until); at.After(end) {
			end = at
		}
	}
	if o.world.Now().Before(end) {
		return
	}
	due := end.Add(recovery)
	for purpose := range all {
		if first := firstTurn(all, purpose); !q.others[purpose] && o.world.Now().Before(due) && first.After(due) {
			o.world.Violate("quiet under refusal: %v waits for %s after the refusals have ended", purpose, first.Sub(end))
		}
	}
}

// firstTurn returns when the first action of a purpose is tried again, or another such write to one of its objects: its
// success ends the pauses of the others.
func firstTurn(all action.Refusals, purpose action.Purpose) time.Time {
	var first time.Time
	known := all[purpose]
	for key := range known.Targets {
		for other, others := range all {
			r, refused := others.Targets[key]
			if refused && other.Verb == purpose.Verb && other.Kind == purpose.Kind && (first.IsZero() || r.Until.Before(first)) {
				first = r.Until
			}
		}
	}
	if known.Until.After(first) {
		return known.Until
	}
	return first
}
