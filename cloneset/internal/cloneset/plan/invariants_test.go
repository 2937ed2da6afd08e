package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// badImages never become ready, each in its own way.
func badImages() map[string]cluster.Image {
	return map[string]cluster.Image{"app:crash": {CrashLoop: true}, "app:pull": {PullError: true}, "app:unready": {NeverReady: true}}
}

// Users edit the set in the middle of everything; in the end they want something good, and get it.
// A set whose history knows bad images ends without a partition, which would keep them.
// Every write and every plan on the way is judged. A failure prints its seed: go test -walk=SEED -walks=1.
func TestRandomEditsKeepTheInvariants(t *testing.T) {
	t.Parallel()
	explore(t, nil)
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
// asks for that, whoever else
// annotates pods.
func TestEnvironmentsFollowTheTemplate(t *testing.T) {
	t.Parallel()
	scenarios.CheckEnvironments(t, worlds(readsConfig), func(w *simulate.World, change func(*corev1.PodTemplateSpec)) {
		edit(w, func(s *v1beta1.CloneSet) { change(&s.Spec.Template) })
	})
}

func readsConfig(s *v1beta1.CloneSet) {
	scenarios.ReadConfig(&s.Spec.Template.Spec)
	s.Spec.Template.Annotations = map[string]string{scenarios.ConfigAnnotation: "1"}
}

func annotations(all map[string]string) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.Template.Annotations = all }
}

func describeSpec(set *v1beta1.CloneSet) string {
	r := rollingUpdate(set)
	return fmt.Sprintf("replicas %d policy %s type %s maxUnavailable %v maxSurge %v partition %v minReady %d scale %+v claims %d lifecycle %+v",
		*set.Spec.Replicas, r.PodUpdatePolicy, set.Spec.UpdateStrategy.Type, r.MaxUnavailable, r.MaxSurge, r.Partition,
		set.Spec.MinReadySeconds, set.Spec.ScaleStrategy, len(set.Spec.VolumeClaimTemplates), set.Spec.Lifecycle)
}

// walk is a random world with a random set, which is as given in all else, and random edits ahead of it.
func walk(t testing.TB, seed uint64, given ...setOption) (*simulate.World, *player) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 99))
	options := cluster.Options{Seed: seed, Images: badImages(), Flaps: 0.1 * float64(seed%3), JudgesResizes: seed%4 < 2}
	w, p := play(t, options, int32(rng.IntN(6)), append([]setOption{randomSet(rng)}, given...)...)
	p.featureGates.PartitionRollback = rng.IntN(4) == 0
	p.featureGates.PreparingUpdateAsUpdate = rng.IntN(4) == 0
	p.featureGates.ShortHash = rng.IntN(4) == 0
	p.featureGates.RecreateOnClaimChange = rng.IntN(4) == 0
	p.featureGates.PreDownload = rng.IntN(4) == 0
	possible := []setOption{valid}
	if rng.IntN(4) == 0 {
		zoned(w)
		edit(w, overZones)
		// An operator may have seen the set before the edit, and no pod gets another spread in place.
		possible = []setOption{notInPlaceOnly, valid}
	}
	answers(w, time.Duration(1+rng.IntN(20))*time.Second)
	at, kept := time.Duration(0), randomPartition(rng)
	for range rng.IntN(6) {
		at += time.Duration(1+rng.IntN(40)) * time.Second
		change := randomEdit(w, rng)
		if kind := rng.IntN(10); kind == 0 {
			change, kept = image([]string{"app:crash", "app:pull", "app:unready"}[rng.IntN(3)]), partition("0")
		}
		w.EditAfter(at, func() {
			edit(w, change, valid)
			w.Tell(cluster.UserActor, "edits: image %s %s", present(w).Spec.Template.Spec.Containers[0].Image, describeSpec(present(w)))
		})
	}
	w.After(at+time.Duration(rng.IntN(60))*time.Second, func() {
		w.Tell(cluster.UserActor, "wants something good")
		edit(w, append([]setOption{image("app:good"), resumed(), kept, updateType(v1beta1.RollingUpdate)}, possible...)...)
	})
	return w, p
}

func randomSet(rng *rand.Rand) setOption {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	sometimes := func(chance int, option setOption) setOption {
		if rng.IntN(100) < chance {
			return option
		}
		return func(*v1beta1.CloneSet) {}
	}
	options := []setOption{
		randomPolicy(rng), maxUnavailable(pick("0", "1", "2", "20%", "50%")), maxSurge(pick("0", "0", "1", "2", "50%")),
		partition(pick("0", "0", "1", "3", "50%")), history(int32(rng.IntN(4))),
		sometimes(30, minReady(5)), sometimes(30, claimed("data")), sometimes(15, claimed("log")), sometimes(15, reusing), sometimes(15, named60),
		sometimes(30, func(s *v1beta1.CloneSet) { hooked()(s); hookTaken()(s) }), sometimes(10, preNormalHook()),
		sometimes(25, grace(int32(1+rng.IntN(15)))), sometimes(20, scaleUnavailable(pick("1", "2", "50%"))), sometimes(15, excluding()),
		sometimes(10, randomOrder(rng)), sometimes(10, paused()),
	}
	return func(s *v1beta1.CloneSet) {
		for _, o := range options {
			o(s)
		}
		valid(s)
	}
}

func randomPolicy(rng *rand.Rand) setOption {
	return policy([]v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly}[rng.IntN(4)])
}

func randomEdit(w *simulate.World, rng *rand.Rand) setOption {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	switch rng.IntN(22) {
	case 0, 1, 2:
		return image(pick("app:1", "app:2", "app:3"))
	case 3, 4:
		return replicas(int32(rng.IntN(7)))
	case 5:
		return randomPartition(rng)
	case 6:
		return paused()
	case 7:
		return resumed()
	case 8:
		return randomPolicy(rng)
	case 9:
		return maxUnavailable(pick("1", "2", "50%"))
	case 10:
		return nameSome(w, rng)
	case 11:
		return maxSurge(pick("0", "1", "2"))
	case 12:
		return updateType(v1beta1.OnDelete)
	case 13:
		return updateType(v1beta1.RollingUpdate)
	case 14:
		return func(s *v1beta1.CloneSet) { s.Spec.Lifecycle = nil }
	case 15:
		return markingHooks(rng.IntN(2) == 0)
	case 16:
		return minReady(int32(rng.IntN(10)))
	case 17:
		return grace(int32(rng.IntN(10)))
	case 18:
		return sized("data", pick("1Gi", "2Gi"))
	case 19:
		return scaleUnavailable(pick("1", "2", "50%"))
	case 20:
		return randomOrder(rng)
	default:
		return newEnvironment(pick("x", "y"))
	}
}

// nameSome names up to three pods in podsToDelete.
func nameSome(w *simulate.World, rng *rand.Rand) setOption {
	return func(s *v1beta1.CloneSet) {
		for _, pod := range activePods(w) {
			if list := &s.Spec.ScaleStrategy.PodsToDelete; rng.IntN(2) == 0 && len(*list) < 3 {
				*list = append(*list, pod.Name)
			}
		}
	}
}

// randomOrder lets pods be updated in an order of their user's, or in none.
func randomOrder(rng *rand.Rand) setOption {
	kind := rng.IntN(3)
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.PriorityStrategy, r.ScatterStrategy = nil, nil
		switch kind {
		case 0:
			r.PriorityStrategy = &workload.UpdatePriorityStrategy{OrderPriority: []workload.UpdatePriorityOrderTerm{{OrderedKey: contract.InstanceIDLabel}}}
		case 1:
			r.ScatterStrategy = workload.UpdateScatterStrategy{{Key: "app", Value: "web"}}
		}
	})
}

func randomPartition(rng *rand.Rand) setOption {
	return partition([]string{"0", "0", "2", "50%", "100%"}[rng.IntN(5)])
}

func updateType(t v1beta1.CloneSetUpdateStrategyType) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.Type = t }
}

// markingHooks are the hooks of hooked that may also mark pods not ready while they hold them.
func markingHooks(mark bool) setOption {
	return func(s *v1beta1.CloneSet) {
		hooked()(s)
		hookTaken()(s)
		s.Spec.Lifecycle.PreDelete.MarkPodNotReady = mark
	}
}

// newEnvironment is a change that cannot be made in place.
func newEnvironment(value string) setOption {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SETTING", Value: value}}
		policy(v1beta1.InPlaceIfPossible)(s)
	}
}

func history(limit int32) setOption {
	return func(s *v1beta1.CloneSet) { s.Spec.RevisionHistoryLimit = &limit }
}

// valid makes a set what admission lets pass: something must be allowed to be unavailable or to
// surge, and policy InPlaceOnly never surges.
func valid(s *v1beta1.CloneSet) {
	if s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy == v1beta1.InPlaceOnly {
		maxSurge("0")(s)
		newImageOnly(s)
	}
	if n, err := readNumbers(s); err == nil && n.maxUnavailable == 0 && n.maxSurge == 0 {
		maxUnavailable("1")(s)
	}
}

// newImageOnly leaves InPlaceOnly nothing that it cannot do.
func newImageOnly(s *v1beta1.CloneSet) {
	if slices.ContainsFunc(s.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.ValueFrom == nil }) {
		policy(v1beta1.ReCreate)(s)
	}
}
