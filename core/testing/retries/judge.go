package retries

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
)

// Judge is the judge of operators whose writes are refused: how many requests are refused and done, how many
// events are sent, how often and for how long a pod leaves service without being updated, and how soon after the end of
// the refusals everything is tried again.
type Judge struct {
	world         *cluster.World
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
	underWay      map[*action.Action]bool // actions under way, one of whose requests was refused
}

// refusedWrite is an object that cannot be written in one way. Objects to be created are all one.
type refusedWrite struct {
	kind string
	uid  types.UID
}

// Watch returns the judge of the operator of a world whose server refuses these kinds of writes. It counts nothing if there
// are none.
func Watch(w *cluster.World, refused []Refused) *Judge {
	j := &Judge{
		world:      w,
		refused:    refused,
		tries:      map[refusedWrite]*tally{},
		writes:     map[refusedWrite]*tally{},
		events:     map[eventKey]*tally{},
		flips:      map[types.UID]*flip{},
		outTooLong: map[types.UID]bool{},
		foreign:    map[types.UID]time.Time{},
		moved:      map[types.UID]bool{},
		others:     map[action.Purpose]bool{},
		underWay:   map[*action.Action]bool{},
	}
	if len(refused) > 0 {
		w.OnEvent(j.watch)
	}
	for _, r := range refused {
		w.After(r.From, func() { w.Tell("server", "refuses to %s, with %d", r.Write, r.Code) })
		w.After(r.Until, func() { w.Tell("server", "takes %s again", r.Write) }) // wakes the operator like any other event
	}
	return j
}

// Refuses returns the answer of the server if it refuses the request now, or nil. It counts the refusal.
func (j *Judge) Refuses(r operator.Request) error {
	since := j.world.Now().Sub(j.world.Begin())
	for _, f := range j.refused {
		if f.covers(r.Kind, since) {
			j.count(r, f.Code)
			j.underWay[r.Action] = true
			return f.answer(r)
		}
	}
	return nil
}

// Ended counts the outcome of an action, and the Event that is sent about it.
func (j *Judge) Ended(r *progress.Outcome) {
	if err := r.Err; err != nil && !errors.Is(err, operator.ErrCrash) && !errors.Is(err, progress.ErrExpired) {
		j.others[r.Action.Purpose()] = !j.underWay[r.Action]
	}
	delete(j.underWay, r.Action)
	j.countEventOf(r)
}

// count counts a request that is refused with the status code.
func (j *Judge) count(r operator.Request, code int) {
	key := refusedWrite{kind: r.Kind, uid: r.Object.GetUID()}
	if f := j.flips[key.uid]; f != nil && f.out && f.refused == "" {
		f.refused = fmt.Sprintf("%s, with %d", r.Kind, code)
	}
	t := tallyOf(j.tries, key)
	if most, tooMany := t.add(j.world.Now()); tooMany {
		j.world.Violate("quiet under refusal: %s %s was refused %d times in %s, at most %d", r.Kind, r.Object.GetName(), t.n, j.world.Now().Sub(t.begun), most)
	}
}

// watch follows what is written, pods in and out of service, and what is worth another try.
func (j *Judge) watch(e cluster.Event) {
	j.countDone(e)
	if e.Old != nil &&
		(!cluster.Same(e.Old.GetLabels(), e.Object.GetLabels()) || !cluster.Same(e.Old.GetOwnerReferences(), e.Object.GetOwnerReferences())) {
		j.moved[e.Object.GetUID()] = e.Actor != cluster.OperatorActor
		if e.Actor != cluster.OperatorActor {
			j.causeFor(e.Object.GetUID())
		}
	}
	pod, isPod := e.Object.(*corev1.Pod)
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case !isPod && cluster.PlainKind(e.Object) == "Workload":
		if e.Old == nil || e.Old.GetGeneration() != e.Object.GetGeneration() {
			j.cause()
		}
		return
	case !isPod || old == nil:
		return
	case cluster.IsTrue(pod, corev1.PodReady) && !cluster.IsTrue(old, corev1.PodReady):
		j.cause()
	}
	if e.Actor == cluster.OperatorActor {
		j.follow(old, pod)
	}
}

// countDone counts the writes that are done although nobody else does anything. What the operator itself does
// is worth another status of the workload, and nothing else.
func (j *Judge) countDone(e cluster.Event) {
	if e.Actor != cluster.OperatorActor {
		clear(j.writes)
		return
	}
	if t := j.tries[refusedWrite{kind: "create " + cluster.PlainKind(e.Object)}]; t != nil && e.Old == nil {
		t.causes++ // where some are created, the others are worth a try
	}
	key := refusedWrite{kind: cluster.PlainKind(e.Object), uid: e.Object.GetUID()}
	if key.kind != "Workload" {
		for other := range j.writes {
			if other.kind == "Workload" {
				delete(j.writes, other)
			}
		}
	}
	t := tallyOf(j.writes, key)
	t.purposes = len(j.others)
	if most, tooMany := t.add(j.world.Now()); tooMany {
		j.world.Violate("quiet under refusal: %s %s was written %d times in %s, at most %d", e.Kind, e.Object.GetName(), t.n, j.world.Now().Sub(t.begun), most)
	}
}

// causeFor says that somebody else has changed whose the object is.
func (j *Judge) causeFor(uid types.UID) {
	for key, t := range j.tries {
		if key.uid == uid {
			t.causes++
		}
	}
	for e, t := range j.events {
		if e.about == string(uid) {
			t.causes++
		}
	}
}

func (j *Judge) cause() {
	for _, t := range j.tries {
		t.causes++
	}
	for _, t := range j.events {
		t.causes++
	}
}
