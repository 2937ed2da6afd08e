package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
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
		edit(w, func(s *v1beta1.StatefulSet) { change(&s.Spec.Template) })
	})
}

func readsConfig(s *v1beta1.StatefulSet) {
	scenarios.ReadConfig(&s.Spec.Template.Spec)
	s.Spec.Template.Annotations = map[string]string{scenarios.ConfigAnnotation: "1"}
}

func annotations(all map[string]string) setOption {
	return func(s *v1beta1.StatefulSet) { s.Spec.Template.Annotations = all }
}

func describeSpec(set *v1beta1.StatefulSet) string {
	r := rollingUpdate(set)
	return fmt.Sprintf("%s replicas %d reserved %v ordinals %v policy %s type %s maxUnavailable %v partition %d paused %t unordered %v minReady %d scale %v claims %d %s retention %v lifecycle %v",
		set.Spec.PodManagementPolicy, *set.Spec.Replicas, set.Spec.ReserveOrdinals, set.Spec.Ordinals, r.PodUpdatePolicy, set.Spec.UpdateStrategy.Type,
		r.MaxUnavailable, valueOr(r.Partition, 0), r.Paused, r.UnorderedUpdate, valueOr(r.MinReadySeconds, 0), set.Spec.ScaleStrategy,
		len(set.Spec.VolumeClaimTemplates), set.Spec.VolumeClaimUpdateStrategy.Type, set.Spec.PersistentVolumeClaimRetentionPolicy, set.Spec.Lifecycle)
}

// walk is a random world with a random set, which is as given in all else, and random edits ahead of it.
func walk(t testing.TB, seed uint64, given ...setOption) (*simulate.World, *player) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 99))
	options := cluster.Options{Seed: seed, Images: badImages(), Flaps: 0.1 * float64(seed%3), JudgesResizes: seed%4 < 2}
	w, p := play(t, options, int32(rng.IntN(6)), append([]setOption{randomSet(rng)}, given...)...)
	p.featureGates.PreDownload = rng.IntN(4) == 0
	p.featureGates.PreparingUpdateAsUpdate, p.offline = rng.IntN(4) == 0, rng.IntN(2) == 0
	answers(w, time.Duration(1+rng.IntN(20))*time.Second)
	at, kept := time.Duration(0), randomPartition(rng)
	for range rng.IntN(6) {
		at += time.Duration(1+rng.IntN(40)) * time.Second
		change := randomEdit(w, rng)
		if kind := rng.IntN(10); kind == 0 {
			change, kept = image([]string{"app:crash", "app:pull", "app:unready"}[rng.IntN(3)]), partition(0)
		}
		w.EditAfter(at, func() {
			edit(w, change, valid)
			w.Tell(cluster.UserActor, "edits: image %s %s", present(w).Spec.Template.Spec.Containers[0].Image, describeSpec(present(w)))
		})
	}
	w.After(at+time.Duration(rng.IntN(60))*time.Second, func() {
		w.Tell(cluster.UserActor, "wants something good")
		edit(w, image("app:good"), paused(false), updateType(appsv1.RollingUpdateStatefulSetStrategyType), kept, possible, feasible, valid)
	})
	return w, p
}

func randomSet(rng *rand.Rand) setOption {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	sometimes := func(chance int, option setOption) setOption {
		if rng.IntN(100) < chance {
			return option
		}
		return func(*v1beta1.StatefulSet) {}
	}
	options := []setOption{
		sometimes(40, inOrder()), randomPolicy(rng), maxUnavailable(pick("1", "2", "20%", "50%", "100%")),
		sometimes(50, randomPartition(rng)), history(int32(rng.IntN(4))), sometimes(30, minReady(5)),
		sometimes(30, claimed("data")), sometimes(15, claimed("log")), sometimes(30, growing("1Gi")), sometimes(30, randomRetention(rng)),
		sometimes(30, func(s *v1beta1.StatefulSet) { hooked()(s); hookTaken()(s) }), sometimes(10, preNormalHook()),
		sometimes(25, grace(int32(1+rng.IntN(15)))), sometimes(20, scaleUnavailable(pick("1", "2", "50%"))),
		sometimes(30, unorderedBy(nil)), sometimes(10, unorderedBy(&workload.UpdatePriorityStrategy{
			OrderPriority: []workload.UpdatePriorityOrderTerm{{OrderedKey: appsv1.PodIndexLabel}},
		})),
		sometimes(20, reserved(rng.IntN(4))), sometimes(20, startAt(int32(rng.IntN(4)))),
	}
	return func(s *v1beta1.StatefulSet) {
		for _, o := range options {
			o(s)
		}
		valid(s)
	}
}

func randomPolicy(rng *rand.Rand) setOption {
	return policy([]v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly}[rng.IntN(4)])
}

func randomPartition(rng *rand.Rand) setOption { return partition(int32(rng.IntN(4))) }

func randomRetention(rng *rand.Rand) setOption {
	word := func() appsv1.PersistentVolumeClaimRetentionPolicyType {
		return []appsv1.PersistentVolumeClaimRetentionPolicyType{"Delete", "Retain"}[rng.IntN(2)]
	}
	return retention(word(), word())
}

func randomEdit(w *simulate.World, rng *rand.Rand) setOption {
	pick := func(texts ...string) string { return texts[rng.IntN(len(texts))] }
	switch rng.IntN(21) {
	case 0, 1, 2:
		return image(pick("app:1", "app:2", "app:3"))
	case 3, 4:
		return replicas(int32(rng.IntN(7)))
	case 5:
		return randomPartition(rng)
	case 6:
		return paused(true)
	case 7:
		return paused(false)
	case 8:
		return randomPolicy(rng)
	case 9:
		return maxUnavailable(pick("1", "2", "50%"))
	case 10:
		return specifySome(w, rng)
	case 11:
		return updateType(appsv1.OnDeleteStatefulSetStrategyType)
	case 12:
		return updateType(appsv1.RollingUpdateStatefulSetStrategyType)
	case 13:
		return func(s *v1beta1.StatefulSet) { s.Spec.Lifecycle = nil }
	case 14:
		return hooked()
	case 15:
		return reserved(rng.IntN(4), fmt.Sprintf("%d-%d", rng.IntN(3), 3+rng.IntN(3)))
	case 16:
		return reserved()
	case 17:
		return startAt(int32(rng.IntN(4)))
	case 18:
		return claimed(pick("data", "log"))
	case 19:
		return growing(pick("1Gi", "2Gi", "3Gi", "100Gi"))
	default:
		return randomRetention(rng)
	}
}

// specifySome labels a pod when the edit comes.
func specifySome(w *simulate.World, rng *rand.Rand) setOption {
	actor := simulate.Relabels("apps.kruise.io/specified-delete", "true")
	return func(*v1beta1.StatefulSet) { actor(w, rng) }
}

func updateType(kind appsv1.StatefulSetUpdateStrategyType) setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.UpdateStrategy.Type = kind
		if kind == appsv1.RollingUpdateStatefulSetStrategyType && s.Spec.UpdateStrategy.RollingUpdate == nil {
			s.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateStatefulSetStrategy{MaxUnavailable: amount("1")}
		}
	}
}

// valid makes of a random spec what admission would accept.
func valid(s *v1beta1.StatefulSet) {
	r := s.Spec.UpdateStrategy.RollingUpdate
	switch {
	case s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		s.Spec.UpdateStrategy.RollingUpdate = nil
	case ordered(s):
		r.UnorderedUpdate, s.Spec.ScaleStrategy = nil, nil
	}
}

// feasible takes sizes from a set that no volume has.
func feasible(s *v1beta1.StatefulSet) {
	for i := range s.Spec.VolumeClaimTemplates {
		if requests := s.Spec.VolumeClaimTemplates[i].Spec.Resources.Requests; requests.Storage().Cmp(resource.MustParse(largestVolume)) > 0 {
			requests[corev1.ResourceStorage] = resource.MustParse("4Gi")
		}
	}
}

// possible takes policy InPlaceOnly from a set with claims: pods from before have none.
func possible(s *v1beta1.StatefulSet) {
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && len(s.Spec.VolumeClaimTemplates) > 0 && r.PodUpdatePolicy == v1beta1.InPlaceOnly {
		r.PodUpdatePolicy = v1beta1.InPlaceIfPossible
	}
}
