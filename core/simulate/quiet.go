package simulate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/refusals"
)

// What quiet under refusal allows for one object in the way: at first, and a minute in the long run. An edit
// of the workload, and a pod that becomes available, are worth another try; so is another object that meets a
// conflict, which says nothing of other objects.
const (
	mostAtFirst  = 8
	mostAMinute  = 2
	mostPerCause = 3
)

// recovery is how long after the end of refusals everything must have been tried again.
const recovery = time.Minute

// quiet judges that an operator is quiet under refusal: its requests that are refused, how often a pod leaves
// service for nothing, and how soon after the end of the refusals everything is tried again.
type quiet struct {
	refused []Refused
	begun   map[inTheWay]time.Time
	tries   map[inTheWay]int
	targets map[inTheWay]map[string]bool // that met a conflict; "" where none did
	causes  map[inTheWay]int
	flips   map[types.UID]*flip
}

// inTheWay is an object that cannot be written in one way. Pods to be created are all one, but for conflicts.
type inTheWay struct {
	kind string
	uid  types.UID
}

// flip is what is known of a pod that left service.
type flip struct {
	out, refused bool
	futile       int // turns in which nothing of the spec was written
}

func watchQuiet(w *World, refused []Refused) *quiet {
	q := &quiet{refused: refused, begun: map[inTheWay]time.Time{}, tries: map[inTheWay]int{}, targets: map[inTheWay]map[string]bool{}, causes: map[inTheWay]int{}, flips: map[types.UID]*flip{}}
	if len(refused) > 0 {
		w.OnEvent(q.watch)
	}
	for _, r := range refused {
		w.After(r.Until, func() {}) // wakes the operator like any other event
	}
	return q
}

// count counts a request that is refused.
func (q *quiet) count(w *World, r request, conflict bool) {
	key := inTheWay{kind: r.kind, uid: r.object.GetUID()}
	if _, ok := q.begun[key]; !ok {
		q.begun[key], q.targets[key] = w.now, map[string]bool{}
	}
	if !conflict {
		r.target = ""
	}
	q.targets[key][r.target] = true
	q.tries[key]++
	if f := q.flips[key.uid]; f != nil && f.out {
		f.refused = true
	}
	minutes := int(w.now.Sub(q.begun[key]) / time.Minute)
	others := len(q.targets[key]) - 1
	if most := mostAtFirst + mostAMinute*minutes*(1+others) + mostPerCause*(q.causes[key]+others); q.tries[key] > most {
		w.Violate("quiet under refusal: %s %s was refused %d times in %s, at most %d", r.kind, r.object.GetName(), q.tries[key], w.now.Sub(q.begun[key]), most)
	}
}

// watch follows pods in and out of service, and what is worth another try.
func (q *quiet) watch(w *World, e Event) {
	pod, isPod := e.Object.(*corev1.Pod)
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case !isPod && plainKind(e.Object) == "Workload":
		if e.Old == nil || e.Old.GetGeneration() != e.Object.GetGeneration() {
			q.cause()
		}
		return
	case !isPod || old == nil:
		return
	case isTrue(pod, corev1.PodReady) && !isTrue(old, corev1.PodReady):
		q.cause()
	}
	if e.Actor != OperatorActor {
		return
	}
	f := q.flips[pod.UID]
	if f == nil {
		f = &flip{}
		q.flips[pod.UID] = f
	}
	was, is := isTrue(old, contract.InPlaceUpdateReady), isTrue(pod, contract.InPlaceUpdateReady)
	switch {
	case !same(old.Spec, pod.Spec):
		f.futile, f.refused = 0, false
	case was && !is:
		f.out, f.refused = true, false
	case !was && is && f.out:
		f.out = false
		if f.refused {
			f.futile++
		}
		if f.futile > 1 {
			w.Violate("quiet under refusal: pod %s left service %d times for nothing", pod.Name, f.futile)
		}
	}
}

func (q *quiet) cause() {
	for key := range q.begun {
		q.causes[key]++
	}
}

// judge demands that soon after the end of all refusals nothing waits any longer because of them.
func (q *quiet) judge(o *Operator) {
	if len(q.refused) == 0 {
		return
	}
	end := o.world.begin
	for _, r := range q.refused {
		if at := o.world.begin.Add(r.Until); at.After(end) {
			end = at
		}
	}
	if o.world.now.Before(end) {
		return
	}
	due := end.Add(recovery)
	for purpose, known := range o.memory.Of(memoryKey, refusals.Moment{Now: o.world.now, Generation: o.generation}) {
		if first := firstTurn(known); o.world.now.Before(due) && first.After(due) {
			o.world.Violate("quiet under refusal: %v waits for %s after the refusals have ended", purpose, first.Sub(end))
		}
	}
}

// firstTurn is when the first action of a purpose is tried again.
func firstTurn(known action.Refused) time.Time {
	var first time.Time
	for _, r := range known.Targets {
		if first.IsZero() || r.Until.Before(first) {
			first = r.Until
		}
	}
	if known.Until.After(first) {
		return known.Until
	}
	return first
}
