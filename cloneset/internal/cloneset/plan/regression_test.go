package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Each test here is something that users of OpenKruise ran into; the numbers are those of its issues.

// identities are the UIDs and nodes of the active pods.
func identities(w *simulate.World) map[string]string {
	all := map[string]string{}
	for _, o := range activePods(w) {
		all[string(o.UID)] = o.Spec.NodeName
	}
	return all
}

func restarts(w *simulate.World) int32 {
	n := int32(0)
	for _, o := range activePods(w) {
		for _, c := range o.Status.ContainerStatuses {
			n += c.RestartCount
		}
	}
	return n
}

// 1765, 1829: a set waited for ever for a pod that it had created and never saw.
func TestPodsThatVanishUnseenAreMadeAgain(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 3)
	vanished := 0
	w.OnEvent(func(w *simulate.World, e cluster.Event) {
		if e.Kind == "Pod" && e.Type == cluster.Added && vanished < 5 {
			vanished++
			require.NoError(t, w.Delete(cluster.UserActor, e.Object))
		}
	})
	simulate.SettleUnder(t, w, p, simulate.Faults{Seed: 1, Lag: 10}, 1000)
	arrived(t, w)
	assert.Equal(t, 5, vanished)
}

// 313: one terminating claim blocked the creation of all pods.
func TestATerminatingClaimHoldsUpNoPod(t *testing.T) {
	w := given(t, 3, claimed("data"), reusing).updated(1).claim("data", "ending").claim("data", "free1")
	w.claims[0].DeletionTimestamp = &w.pods[0].CreationTimestamp
	creates := created(t, w.plan())
	require.Len(t, creates, 2)
	for _, a := range creates {
		assert.NotEqual(t, "web-ending", a.Object.GetName())
	}
}

// 376: going back from a revision that never came up killed the only healthy pod.
func TestGoingBackFromABadRevisionSparesHealthyPods(t *testing.T) {
	for _, way := range [][]setOption{
		{maxSurge("1"), maxUnavailable("0")},
		{maxSurge("1"), maxUnavailable("0"), policy(v1beta1.InPlaceIfPossible)},
		{maxUnavailable("1")},
	} {
		for name := range badImages() {
			w, p := play(t, cluster.Options{Seed: 2, Images: badImages()}, 2, way...)
			simulate.Settle(t, w, p, 500)
			edit(w, image(name))
			simulate.Settle(t, w, p, 500)
			healthy := w.View(nil).Available("set-uid", 0)
			require.NotEmpty(t, healthy)
			edit(w, image("app:1"))
			simulate.Settle(t, w, p, 500)
			arrived(t, w)
			for _, o := range healthy {
				assert.Contains(t, identities(w), string(o.UID), "%s: pod %s was healthy, the story:\n%s", name, o.Name, w.Story())
			}
		}
	}
}

// 1478: scaling in waited without a word for pods that were about to go.
func TestScaleInTellsForWhomItWaits(t *testing.T) {
	w := given(t, 3, minReady(3600)).updated(5, gen.Ready(now))
	require.Contains(t, w.waits(), "MaxUnavailable")
	w = given(t, 3, minReady(3600)).updated(3).updated(2, unready)
	require.Equal(t, outcome{deleteNew: 2}, w.outcome(), "pods out of service go at once")
	w = given(t, 3).updated(5, unready)
	require.Equal(t, outcome{deleteNew: 2}, w.outcome(), "they go at once though more are out of service than maxUnavailable allows")
}

// 1153: a paused set made surge pods of the new revision.
func TestAPausedSetMakesNoPodOfTheNewRevision(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 3}, 3, maxSurge("2"))
	simulate.Settle(t, w, p, 500)
	before := identities(w)
	edit(w, paused(), image("app:2"))
	simulate.Settle(t, w, p, 500)
	assert.Equal(t, before, identities(w))
	edit(w, resumed())
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
}

// 632, 1751, 1819: a partition is the number of pods at the current revision, in both directions.
func TestThePartitionIsExactInBothDirections(t *testing.T) {
	for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
		w, p := play(t, cluster.Options{Seed: 4}, 5, policy(way), maxUnavailable("2"), partition("5"))
		p.featureGates.PartitionRollback = true
		simulate.Settle(t, w, p, 500)
		edit(w, image("app:2"))
		for _, kept := range []int{4, 1, 3, 5, 2} {
			edit(w, partition(fmt.Sprint(kept)))
			simulate.Settle(t, w, p, 500)
			old := 0
			for _, o := range activePods(w) {
				if o.Spec.Containers[0].Image == "app:1" {
					old++
				}
			}
			assert.Equal(t, kept, old, "policy %s, the story:\n%s", way, w.Story())
		}
	}
}

// 1156, 1183: pods stayed in PreparingUpdate when their update was no longer wanted.
func TestPodsComeBackWhenTheirUpdateIsNoLongerWanted(t *testing.T) {
	for name, end := range map[string][]setOption{
		"the template went back":   {image("app:1")},
		"the partition was raised": {partition("3")},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := play(t, cluster.Options{Seed: 5}, 3, policy(v1beta1.InPlaceIfPossible), hooked(), hookTaken(), maxUnavailable("2"))
			simulate.Settle(t, w, p, 500)
			edit(w, image("app:2"))
			simulate.Settle(t, w, p, 500)
			require.Len(t, w.View(nil).Available("set-uid", 0), 1, "nobody lets the pods go")
			edit(w, end...)
			simulate.Settle(t, w, p, 500)
			assert.Len(t, w.View(nil).Available("set-uid", 0), 3, "the story:\n%s", w.Story())
			assert.Zero(t, restarts(w))
		})
	}
}

// 369, 606, 635, 1493, 2297: an update between two names of one image never ended.
func TestTwoNamesOfOneImageEndAnUpdate(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		same := map[string]cluster.Image{"app:1": {Digest: "same"}, "docker.io/library/app:1": {Digest: "same"}}
		w, p := play(t, cluster.Options{Seed: seed, Images: same}, 2, policy(v1beta1.InPlaceOnly))
		simulate.Settle(t, w, p, 500)
		before := identities(w)
		edit(w, image("docker.io/library/app:1"))
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
		assert.Equal(t, before, identities(w))
	}
}

// 2276: with a stale cache the pod was changed before it was out of service.
func TestPodsAreOutOfServiceBeforeTheyChangeHoweverStaleTheView(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		w := simulate.New(cluster.Options{Seed: seed}, newSet(3, policy(v1beta1.InPlaceIfPossible)))
		w.CheckInPlace()
		p := newPlayer(w, FeatureGates{})
		simulate.Settle(t, w, p, 500)
		timely(20*time.Second, wants("app:2"), wants("app:3"))(w)
		operator := simulate.NewOperator(w, p, simulate.Faults{Seed: seed, Lag: 20, NoFreshness: true, Interleave: 0.5, Passes: 500})
		for range 500 {
			operator.Pass()
			w.Step()
		}
		for _, violation := range w.Violations() { // that a write comes twice is what freshness prevents
			require.Contains(t, violation, "changes nothing", "seed %d, the story:\n%s", seed, w.Story())
		}
		assert.Contains(t, w.Story(), "in place (Update)")
	}
}

// 1683: an injected sidecar kept pods from being updated in place once resize was on.
func TestInjectedContainersAreLeftAlone(t *testing.T) {
	sidecar := gen.Change(func(o *corev1.Pod) {
		o.Spec.Containers = append(o.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}})
	})
	todo := given(t, 1, policy(v1beta1.InPlaceOnly)).old(1, sidecar).plan()
	require.Equal(t, 1, todo.Count(action.UpdateInPlace), todo.String())
	for a := range judges.Actions(todo.Steps, stepUpdate) {
		assert.NotContains(t, fmt.Sprint(a.Patches, a.LaterPatches), "sidecar:1")
	}
}

// 541, 1212, 1668, 2366: resources could not be changed in place.
func TestResourcesChangeInPlaceWithoutARestart(t *testing.T) {
	cpu := func(amount string) setOption {
		return func(s *v1beta1.CloneSet) {
			s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
		}
	}
	w, p := play(t, cluster.Options{Seed: 6}, 2, policy(v1beta1.InPlaceIfPossible), cpu("1"))
	simulate.Settle(t, w, p, 500)
	before := identities(w)
	edit(w, cpu("2"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, before, identities(w))
	assert.Zero(t, restarts(w))
	for _, o := range activePods(w) {
		assert.Equal(t, "2", o.Spec.Containers[0].Resources.Requests.Cpu().String())
		assert.Equal(t, contract.LifecycleNormal, o.Labels[contract.LifecycleStateLabel])
	}
}

// 196, 1134: small percentages were rounded to nothing and hung.
func TestNoPercentageHangsARollout(t *testing.T) {
	for _, percentage := range []string{"1%", "20%", "99%", "100%"} {
		for _, surge := range []string{"0", "1%", "100%"} {
			for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
				w, p := play(t, cluster.Options{Seed: 7}, 3, policy(way), maxUnavailable(percentage), maxSurge(surge))
				simulate.Settle(t, w, p, 500)
				edit(w, image("app:2"))
				simulate.Settle(t, w, p, 500)
				arrived(t, w)
			}
		}
	}
}

// A set that was deleted with its pods kept and created again knows their revisions again: in the middle of
// a rollout, and for the next image.
func TestASetCreatedAgainKnowsItsRevisions(t *testing.T) {
	given := []setOption{policy(v1beta1.InPlaceIfPossible), maxUnavailable("2"), partition("1"), claimed("data")}
	w, p := play(t, cluster.Options{Seed: 5}, 3, given...)
	simulate.Settle(t, w, p, 500)
	edit(w, image("app:2"))
	simulate.Settle(t, w, p, 500)
	before := identities(w)
	require.NoError(t, w.Leave(cluster.UserActor, present(w)))
	w.Add(newSet(3, append(given, image("app:2"))...))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	edit(w, image("app:3"), partition("0"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, before, identities(w), "the story:\n%s", w.Story())
}
