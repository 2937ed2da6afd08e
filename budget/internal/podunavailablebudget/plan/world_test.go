package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

const (
	// slowest is how many seconds a request can take that was granted: other webhooks are asked, too.
	slowest = 33
	// requestTimeout is when API servers give a request up.
	requestTimeout = 34 * time.Second
)

// world is a server with one budget, the pods of one workload, two replicas of the webhook and the controller. Views lag,
// clocks differ, answers get lost, the controller restarts.
type world struct {
	rand     *rand.Rand
	now      time.Time
	replicas int
	// reuse is true if a new pod gets the name of the one that it replaces, as in a StatefulSet.
	reuse bool
	// alias is the name by which nodes report all images, as with several tags of one digest; empty if they report the pods'.
	alias   string
	created int
	version int // of the pod that was written last

	versions []*v1beta1.PodUnavailableBudget // of the budget; the last one is the server's
	pods     map[string]*simPod              // by name
	webhooks []int                           // the version that each replica has seen
	skews    []time.Duration                 // of the clock of each replica
	recorded []map[string]time.Time          // what each replica has recorded, by operation and UID
	requests []*request
	events   []podEvent             // of the pods that the controller has not seen yet
	view     map[string]*corev1.Pod // what the controller has seen of the pods
	looks    Looks
	sights   disruption.Sights
	replaced Replacements
	skew     time.Duration // of the controller's clock
	calm     bool          // no more requests, failures and faults
	wronged  bool          // somebody was refused what is free, or a refusal was to leave a trace
}

// simPod is a pod and what is to become of it.
type simPod struct {
	*corev1.Pod
	failed   bool      // by itself
	known    time.Time // when its node says that it knows of an update; zero for never
	restarts time.Time // when its container ends for it, at most its grace period later; zero for never
	next     time.Time // when it becomes ready, or goes
}

// podEvent is what a watch tells of a pod; nil if it has gone.
type podEvent struct {
	name string
	pod  *corev1.Pod
}

func newWorld(seed uint64, b *v1beta1.PodUnavailableBudget, replicas int) *world {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a replay needs the same numbers
	w := &world{
		rand: r, now: now, replicas: replicas, reuse: r.IntN(2) == 0, pods: map[string]*simPod{}, view: map[string]*corev1.Pod{},
		webhooks: []int{0, 0}, skews: []time.Duration{0, time.Duration(r.IntN(120)-60) * time.Second},
		recorded: []map[string]time.Time{{}, {}},
		skew:     time.Duration(r.IntN(120)-60) * time.Second, sights: disruption.Sights{},
	}
	b.Status = v1beta1.PodUnavailableBudgetStatus{}
	if r.IntN(3) == 0 {
		w.alias = "app:stable"
	}
	w.versions = []*v1beta1.PodUnavailableBudget{b}
	for range replicas {
		w.create("").next = now
	}
	return w
}

func (w *world) create(name string) *simPod {
	w.created++
	if name == "" {
		name = fmt.Sprintf("web-%d", w.created)
	}
	pod := gen.Pod(name, gen.NotReady(gen.Epoch()))
	pod.UID = types.UID(fmt.Sprint(w.created))
	pod.OwnerReferences = []metav1.OwnerReference{controller}
	pod.Status.ObservedGeneration = 1
	p := &simPod{Pod: pod, next: w.now.Add(w.upTo(20))}
	w.pods[name] = p
	w.version++
	pod.ResourceVersion = strconv.Itoa(w.version)
	w.events = append(w.events, podEvent{name, pod})
	return p
}

func (w *world) upTo(seconds int) time.Duration {
	return time.Duration(w.rand.IntN(seconds*1000)) * time.Millisecond
}

func (w *world) budget() *v1beta1.PodUnavailableBudget { return w.versions[len(w.versions)-1] }

// write writes a status as the server does: only over the version that was read.
func (w *world) write(version int, s *v1beta1.PodUnavailableBudgetStatus) bool {
	if version != len(w.versions)-1 {
		return false
	}
	next := w.budget().DeepCopy()
	next.Status = *s.DeepCopy()
	w.versions = append(w.versions, next)
	return true
}

// set changes a pod; nobody changes objects that others have seen.
func (w *world) set(p *simPod, options ...gen.PodOption) {
	p.Pod = p.DeepCopy()
	for _, o := range options {
		o(p.Pod)
	}
	w.version++
	p.ResourceVersion = strconv.Itoa(w.version)
	w.events = append(w.events, podEvent{p.Name, p.Pod})
}

// nodes let time have its effect on the pods.
func (w *world) nodes() {
	for _, name := range sortedNames(w.pods) {
		p := w.pods[name]
		switch {
		case p.DeletionTimestamp != nil && !w.now.Before(p.next):
			delete(w.pods, name)
			w.events = append(w.events, podEvent{name: name})
			if !w.reuse {
				name = ""
			}
			w.create(name).failed = p.failed // whoever replaces a failed pod has not served yet
		case !p.restarts.IsZero() && !w.now.Before(p.restarts):
			p.known, p.restarts, p.next = time.Time{}, time.Time{}, w.now.Add(w.upTo(20))
			w.set(p, gen.NotReady(gen.Epoch()), knows, w.starts, w.reports)
		case !p.known.IsZero() && !w.now.Before(p.known):
			p.known = time.Time{}
			w.set(p, knows)
		case p.DeletionTimestamp == nil && p.restarts.IsZero() && disruption.StatusOf(p.Pod, corev1.PodReady) != "True" && !w.now.Before(p.next):
			p.failed = false
			w.set(p, gen.Ready(gen.Epoch()), knows, w.reports)
		}
	}
}

// knows is what a node says of a pod whose spec it has seen.
func knows(pod *corev1.Pod) { pod.Status.ObservedGeneration = pod.Generation }

// starts has the container of the pod start anew.
func (w *world) starts(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].RestartCount++ }

// reports has the node say which image the container runs: that of the pod.
func (w *world) reports(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[0].Image = cmp.Or(w.alias, pod.Spec.Containers[0].Image)
}

// count is a pass of the controller. What it has seen of the pods may be old.
func (w *world) count() {
	at, version := w.now.Add(w.skew), len(w.versions)-1
	if !w.calm && w.rand.IntN(4) == 0 {
		version = max(0, version-w.rand.IntN(3))
	}
	b := w.versions[version]
	w.sights = w.sights.Next(&b.Status, at)
	s := Snapshot{
		Budget: b, Workloads: workload(int32(w.replicas)), Sights: w.sights, Replacements: w.replaced, Now: at, //nolint:gosec // it is small
	}
	w.looks = w.looks.StillNeeded(func(name string) *corev1.Pod { return w.view[name] })
	known := map[string]*corev1.Pod{}
	for _, g := range disruption.Grants(&b.Status) {
		if pod := w.looks.Newest(g.Pod, w.view[g.Pod]); pod != nil {
			known[g.Pod] = pod
		}
	}
	looks := Looks{}
	for _, name := range s.LookAt(known) {
		var pod *corev1.Pod
		if p, ok := w.pods[name]; ok {
			pod = p.Pod
		}
		looks[name] = NewLook(pod, b.Status.PodUIDs[name], w.view[name])
	}
	maps.Copy(w.looks, looks)
	s.Looks = w.looks
	w.replaced = w.replaced.Next(&b.Status, looks, at)
	s.Replacements = w.replaced
	for _, pod := range w.view {
		s.Pods = append(s.Pods, pod)
	}
	if p := Compute(s); !w.calm && w.rand.IntN(6) == 0 {
		return // it died before it wrote
	} else {
		w.write(version, &p.Status)
	}
}

// see brings the controller's view of the pods forward, in the order in which they changed; to the present when it starts
// anew (the leader fence).
func (w *world) see(all bool) {
	n := len(w.events)
	if !all && n > 0 {
		n = w.rand.IntN(n + 1)
	}
	for _, e := range w.events[:n] {
		if delete(w.view, e.name); e.pod != nil {
			w.view[e.name] = e.pod
		}
	}
	w.events = w.events[n:]
}

// step lets one actor act.
func (w *world) step() {
	switch w.rand.IntN(9) {
	case 0:
		w.now = w.now.Add(w.upTo(4))
	case 1:
		w.see(false)
	case 2:
		w.count()
	case 3, 4:
		if !w.calm && len(w.requests) < 12 {
			names := sortedNames(w.pods)
			w.requests = append(w.requests, &request{
				pod: w.pods[names[w.rand.IntN(len(names))]].Pod, op: []v1beta1.PubOperation{del, evict, upd, upd, resize}[w.rand.IntN(5)], replica: w.rand.IntN(2),
				ends: w.now.Add(requestTimeout),
			})
		}
	case 5, 6:
		if i := len(w.requests); i > 0 {
			i = w.rand.IntN(i)
			if r := w.requests[i]; !r.granted && w.ask(r) {
				w.requests = slices.Delete(w.requests, i, i+1)
			}
		}
	case 7:
		replica := w.rand.IntN(2)
		w.webhooks[replica] = min(w.webhooks[replica]+w.rand.IntN(4), len(w.versions)-1)
	case 8:
		w.mishap()
	}
	w.requests = slices.DeleteFunc(w.requests, w.goOn)
	w.nodes()
}

func (w *world) mishap() {
	if w.calm {
		return
	}
	switch w.rand.IntN(20) {
	case 2, 3: // a user exempts a pod, or no more
		names := sortedNames(w.pods)
		p := w.pods[names[w.rand.IntN(len(names))]]
		w.set(p, gen.Annotation(v1beta1.NoProtectAnnotation, strconv.FormatBool(!disruption.IsExempt(p.Pod))))
	case 0: // a new leader
		w.sights, w.looks, w.replaced = disruption.Sights{}, Looks{}, nil
		w.see(true)
	case 1: // a pod fails
		names := sortedNames(w.pods)
		p := w.pods[names[w.rand.IntN(len(names))]]
		if p.DeletionTimestamp == nil && p.restarts.IsZero() {
			p.failed, p.next = true, w.now.Add(w.upTo(30))
			w.set(p, gen.NotReady(gen.Epoch()), w.starts)
		}
	}
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
