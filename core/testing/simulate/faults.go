package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/retries"
)

// Faults are the faults that an operator meets. Numbers between 0 and 1 are probabilities; the zero value has no
// faults.
type Faults struct {
	// Seed decides which faults happen, apart from the world's own seed.
	Seed uint64
	// Passes is the number of passes after which the faults stop; 0 means 40.
	Passes int
	// CrashAfter lets the operator die right after this write, counted from 1, and start again with
	// an empty memory. 0 means never.
	CrashAfter int
	// Lag is by how many events of a kind a view may be behind.
	Lag int
	// NoFreshness disables the freshness tracker and the leader fence: views may lack the operator's own writes, and a
	// new operator may start from an old view. Only for tests of this package.
	NoFreshness bool
	// LostEvents is how often an event starts no pass.
	LostEvents float64
	// Interleave is how often the world goes on between two writes of one plan, for no longer than a request may take.
	Interleave float64
	// Conflict, TooManyRequests and InternalError are how often a write is refused.
	Conflict, TooManyRequests, InternalError float64
	// Refused are kinds of writes that are refused for a while, whatever the number of passes.
	Refused []retries.Refused
	// Timeout is how often a write is done and its answer lost.
	Timeout float64
	// ForgetsLostAnswers makes the freshness tracker ignore writes whose answer was lost. Only for tests of this
	// package.
	ForgetsLostAnswers bool
	// Foreign is how often one of the Actors acts before a pass.
	Foreign float64
	// Actors are the foreign controllers and people.
	Actors []Actor
}

// AllFaults returns faults of every kind but crashes and foreign actors.
func AllFaults(seed uint64) Faults {
	return Faults{
		Seed:            seed,
		Lag:             5,
		LostEvents:      0.3,
		Interleave:      0.2,
		Conflict:        0.05,
		TooManyRequests: 0.03,
		InternalError:   0.03,
		Timeout:         0.05,
	}
}

// Actor is another actor who changes the world.
type Actor func(w *World, rng *rand.Rand)

// DeletesPods deletes a pod at random.
func DeletesPods(w *World, rng *rand.Rand) {
	if pod := anyPod(w, rng); pod != nil {
		w.Tell("foreign", "delete pod %s", pod.Name)
		_ = w.Delete(cluster.UserActor, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	}
}

// Relabels sets the label to the value, or removes it when the value is empty, on a pod at random.
func Relabels(key, value string) Actor {
	return editsPods("label pod %s", func(_ *World, pod *corev1.Pod) {
		if value == "" {
			delete(pod.Labels, key)
			return
		}
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[key] = value
	})
}

// Annotates sets the annotation to one of the values on a pod at random.
func Annotates(key string, values ...string) Actor {
	return func(w *World, rng *rand.Rand) {
		value := values[rng.IntN(len(values))]
		editsPods("annotate pod %s", func(_ *World, pod *corev1.Pod) {
			annotations := map[string]string{}
			maps.Copy(annotations, pod.Annotations)
			annotations[key] = value
			pod.Annotations = annotations
		})(w, rng)
	}
}

// StripsLabels removes all labels of a pod at random and restores them after the time.
func StripsLabels(d time.Duration) Actor {
	return editsPods("take all labels off pod %s", func(w *World, pod *corev1.Pod) {
		had := pod.Labels
		pod.Labels = nil
		w.After(d, func() {
			_ = cluster.Change(w, cluster.UserActor, "", pod, func(p *corev1.Pod) {
				if p.UID == pod.UID {
					labels := map[string]string{}
					maps.Copy(labels, had)
					maps.Copy(labels, p.Labels)
					p.Labels = labels
				}
			})
		})
	})
}

// Orphans removes the owner references of a pod at random.
func Orphans(w *World, rng *rand.Rand) {
	editsPods("orphan pod %s", func(_ *World, pod *corev1.Pod) { pod.OwnerReferences = nil })(w, rng)
}

// AddsFinalizer adds a finalizer to a pod at random and removes it after the time.
func AddsFinalizer(finalizer string, d time.Duration) Actor {
	return editsPods("hold pod %s", func(w *World, pod *corev1.Pod) {
		if pod.DeletionTimestamp != nil {
			return
		}
		pod.Finalizers = append(pod.Finalizers, finalizer)
		w.After(d, func() {
			_ = cluster.Change(w, cluster.UserActor, "", pod, func(p *corev1.Pod) { p.Finalizers = without(p.Finalizers, finalizer) })
		})
	})
}

func editsPods(text string, edit func(*World, *corev1.Pod)) Actor {
	return func(w *World, rng *rand.Rand) {
		if pod := anyPod(w, rng); pod != nil {
			w.Tell("foreign", text, pod.Name)
			_ = cluster.Change(w, cluster.UserActor, "", pod, func(p *corev1.Pod) { edit(w, p) })
		}
	}
}

func anyPod(w *World, rng *rand.Rand) *corev1.Pod {
	pods := w.Pods()
	if len(pods) == 0 {
		return nil
	}
	return pods[rng.IntN(len(pods))]
}

func without(list []string, text string) []string {
	var rest []string
	for _, s := range list {
		if s != text {
			rest = append(rest, s)
		}
	}
	return rest
}

// active reports whether faults still happen.
func (o *Operator) active() bool {
	passes := o.faults.Passes
	if passes == 0 {
		passes = 40
	}
	return o.passes <= passes
}

func (o *Operator) roll(probability float64) bool {
	return probability > 0 && o.active() && o.rng.Float64() < probability
}

// actForeign makes a foreign actor act.
func (o *Operator) actForeign() {
	if len(o.faults.Actors) == 0 || !o.roll(o.faults.Foreign) {
		return
	}
	o.world.acts++
	act := o.faults.Actors[o.rng.IntN(len(o.faults.Actors))]
	chance := rand.New(rand.NewPCG(o.rng.Uint64(), 0)) //nolint:gosec // its own, so that others act the same without it
	if !o.world.without[fmt.Sprintf("act%d", o.world.acts)] {
		act(o.world, chance)
	}
}

// refusal returns the error with which a write fails, or nil.
func (o *Operator) refusal(object action.Object) error {
	switch {
	case o.roll(o.faults.Conflict):
		return apierrors.NewConflict(cluster.ResourceOf(object), object.GetName(), errFault)
	case o.roll(o.faults.TooManyRequests):
		return apierrors.NewTooManyRequests("fault", 1)
	case o.roll(o.faults.InternalError):
		return apierrors.NewInternalError(errFault)
	}
	return nil
}

// look returns the view of a pass: every kind as old as the faults and the freshness tracker allow, and never older
// than it was shown before.
func (o *Operator) look() *cluster.View {
	w := o.world
	w.Sees(o.shown)
	view := w.CacheView(func(kind string) int {
		all := len(w.Events(kind))
		known := o.shown[kind]
		if !o.faults.NoFreshness {
			known = max(known, o.written[kind])
		}
		lag := 0
		if room := min(o.faults.Lag, all-known); room > 0 && o.active() && !w.Quiet() {
			lag = o.rng.IntN(room + 1)
		}
		o.shown[kind] = all - lag
		return lag
	})
	if !o.faults.NoFreshness {
		o.answers.showIn(view, o.shown)
	}
	return view
}
