package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// badImages never become ready, each in its own way.
func badImages() map[string]cluster.Image {
	return map[string]cluster.Image{"app:crash": {CrashLoop: true}, "app:pull": {PullError: true}, "app:unready": {NeverReady: true}}
}

// Users edit the set in the middle of everything; in the end they want something good, and get it. Every write and
// every plan on the way is judged. A failure prints its seed: go test -walk=SEED -walks=1.
func TestRandomEditsKeepTheInvariants(t *testing.T) {
	t.Parallel()
	explore(t, nil)
}

// The same with a selector of nodes from the start, which random sets seldom have while they are updated.
func TestRandomEditsKeepToSelectedNodes(t *testing.T) {
	t.Parallel()
	w := worlds(onNodes("node-0", "node-2"))
	w.Count = 50
	w.Run(t)
}

// And with a partition.
func TestRandomEditsKeepToThePartition(t *testing.T) {
	t.Parallel()
	w := worlds(partition("1"))
	w.Count = 50
	w.Run(t)
}

// explore walks through random worlds under the faults.
func explore(t *testing.T, faults func(seed uint64) simulate.Faults) {
	t.Helper()
	w := worlds()
	w.Faults = faults
	w.Run(t)
}

// worlds are random worlds with a random set, which is as given in all else.
func worlds(given ...setOption) simulate.Walk {
	return simulate.Walk{
		Count: 200, Unarrived: unarrived,
		Start: func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
			t.Helper()
			return walk(t, seed, given...)
		},
		Describe: func(w *simulate.World) string { return describeSpec(present(w)) },
	}
}

// Where nodes have agents, containers that read an annotation follow the template's, in place, and are restarted when it
// asks for that, whoever else annotates
// pods.
func TestEnvironmentsFollowTheTemplate(t *testing.T) {
	t.Parallel()
	scenarios.CheckEnvironments(t, worlds(inPlace, readsConfig), func(w *simulate.World, change func(*corev1.PodTemplateSpec)) {
		edit(w, func(s *v1beta1.DaemonSet) { change(&s.Spec.Template) })
	})
}

func readsConfig(s *v1beta1.DaemonSet) {
	scenarios.ReadConfig(&s.Spec.Template.Spec)
	s.Spec.Template.Annotations = map[string]string{scenarios.ConfigAnnotation: "1"}
}

func annotations(all map[string]string) setOption {
	return func(s *v1beta1.DaemonSet) { s.Spec.Template.Annotations = all }
}

func describeSpec(set *v1beta1.DaemonSet) string {
	r := rollingUpdate(set)
	return fmt.Sprintf("type %s %s maxUnavailable %v maxSurge %v partition %v selector %v paused %t unready %s unselected %s minReady %d burst %v scale %v lifecycle %v nodes %v",
		set.Spec.UpdateStrategy.Type, r.RollingUpdateType, r.MaxUnavailable, r.MaxSurge, r.Partition, r.Selector, ptr.Deref(r.Paused, false),
		r.UnreadyNodePolicy, r.UnselectedNodePolicy, set.Spec.MinReadySeconds, set.Spec.BurstReplicas, set.Spec.ScaleStrategy, set.Spec.Lifecycle,
		set.Spec.Template.Spec.NodeSelector)
}

// walk is a random world with a random set, which is as given in all else, and random edits ahead of it.
func walk(t testing.TB, seed uint64, given ...setOption) (*simulate.World, *player) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 99))
	options := cluster.Options{Seed: seed, Images: badImages(), Flaps: 0.1 * float64(seed%3), JudgesResizes: seed%4 < 2}
	w, p := play(t, options, 1+rng.IntN(5), append([]setOption{randomSet(rng)}, given...)...)
	p.featureGates.PruneIneligibleNodes = rng.IntN(2) == 0
	p.featureGates.PreDownload = rng.IntN(4) == 0
	answers(w, time.Duration(1+rng.IntN(20))*time.Second)
	at := time.Duration(0)
	for range rng.IntN(6) {
		at += time.Duration(1+rng.IntN(40)) * time.Second
		change := randomEdit(w, rng)
		if rng.IntN(10) == 0 {
			change = image([]string{"app:crash", "app:pull", "app:unready"}[rng.IntN(3)])
		}
		w.EditAfter(at, func() {
			edit(w, change)
			w.Tell(cluster.UserActor, "edits: image %s %s", present(w).Spec.Template.Spec.Containers[0].Image, describeSpec(present(w)))
		})
	}
	w.After(at+time.Duration(rng.IntN(60))*time.Second, func() {
		w.Tell(cluster.UserActor, "wants something good")
		edit(w, image("app:good"), inRolling, pausing(false), partition("0"), everywhere)
	})
	return w, p
}

// inRolling returns to type RollingUpdate.
func inRolling(s *v1beta1.DaemonSet) {
	if onDelete(s) {
		s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.RollingUpdateStrategyType, RollingUpdate: &v1beta1.RollingUpdateDaemonSet{MaxUnavailable: amount("1")}}
	}
}

// everywhere updates all nodes.
func everywhere(s *v1beta1.DaemonSet) { s.Spec.UpdateStrategy.RollingUpdate.Selector = nil }

func randomSet(rng *rand.Rand) setOption {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	sometimes := func(chance int, option setOption) setOption {
		if rng.IntN(100) < chance {
			return option
		}
		return func(*v1beta1.DaemonSet) {}
	}
	options := []setOption{
		maxUnavailable(pick("1", "2", "20%", "50%", "100%")), sometimes(30, maxSurge(pick("1", "2", "50%", "100%"))),
		sometimes(50, inPlaceUnlessSurging), sometimes(40, partition(pick("0", "1", "2", "50%"))), sometimes(20, onNodes("node-0", "node-1")),
		sometimes(25, reverting), sometimes(40, minReady(5)), sometimes(20, burst(pick("1", "2", "50%"))), sometimes(20, partitionedScaling),
		sometimes(30, func(s *v1beta1.DaemonSet) { hooked(s); hookTaken(s) }),
		sometimes(30, unready(v1beta1.UnreadyNodePolicy(pick("Count", "Skip", "SkipIfNotReadyBeforeUpdate")))),
		func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = new(int32(rng.IntN(4))) },
	}
	return func(s *v1beta1.DaemonSet) {
		for _, o := range options {
			o(s)
		}
	}
}

// inPlaceUnlessSurging updates in place, where admission would let it.
func inPlaceUnlessSurging(s *v1beta1.DaemonSet) {
	if !surges(s) {
		inPlace(s)
	}
}

// surging surges. Nothing is updated in place then.
func surging(v string) setOption {
	return func(s *v1beta1.DaemonSet) {
		maxSurge(v)(s)
		s.Spec.UpdateStrategy.RollingUpdate.RollingUpdateType = v1beta1.StandardRollingUpdateType
	}
}

func randomEdit(w *simulate.World, rng *rand.Rand) setOption {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	rollingOnly := func(option setOption) setOption {
		return func(s *v1beta1.DaemonSet) {
			inRolling(s)
			option(s)
		}
	}
	switch rng.IntN(20) {
	case 0, 1, 2, 3:
		return image(pick("app:1", "app:2", "app:3"))
	case 4, 5:
		return rollingOnly(partition(pick("0", "1", "2", "50%")))
	case 6:
		return rollingOnly(pausing(true))
	case 7:
		return rollingOnly(pausing(false))
	case 8:
		return rollingOnly(maxUnavailable(pick("1", "2", "50%")))
	case 9:
		return rollingOnly(surging(pick("1", "2", "100%")))
	case 10:
		return specifySome(w, rng)
	case 11:
		return deleting
	case 12:
		return rollingOnly(onNodes(pick("node-0", "node-1"), "node-2"))
	case 13:
		return func(s *v1beta1.DaemonSet) { s.Spec.Lifecycle = nil }
	case 14:
		return hooked
	case 15:
		return rollingOnly(reverting)
	case 16:
		return rollingOnly(inPlaceUnlessSurging)
	case 17:
		return func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"} }
	case 18:
		return func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = nil }
	default:
		return minReady(int32(rng.IntN(10)))
	}
}

// specifySome labels a pod when the edit comes.
func specifySome(w *simulate.World, rng *rand.Rand) setOption {
	actor := simulate.Relabels("apps.kruise.io/specified-delete", "true")
	return func(*v1beta1.DaemonSet) { actor(w, rng) }
}

// nodeActors are what happens to nodes; nothing of it lasts longer than 40 seconds.
func nodeActors() []simulate.Actor {
	return []simulate.Actor{
		simulate.FailsNodes(40 * time.Second), simulate.EvictsPods, simulate.RejectsPods(20 * time.Second), simulate.ReplacesNodes(30 * time.Second), simulate.CordonsNodes(30 * time.Second),
		simulate.TaintsNodes("busy", corev1.TaintEffectNoSchedule, 30*time.Second), simulate.TaintsNodes("broken", corev1.TaintEffectNoExecute, 30*time.Second),
		simulate.RelabelsNodes("color", "blue", "green"), simulate.RelabelsNodes("node", "node-0", "node-1", "node-9"),
	}
}
