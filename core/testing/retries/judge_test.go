package retries

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
)

func TestQuietSeesWhatItIsFor(t *testing.T) {
	refused := []Refused{{Write: "patch spec of Pod", Code: 403, Until: time.Hour}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "set"}}
	for name, disturb := range map[string]func(w *cluster.World, j *Judge){
		"Event Warning FailedCreate was told 9 times": func(_ *cluster.World, j *Judge) {
			for range retriesAtFirst + 1 {
				j.countEvent(eventKey{corev1.EventTypeWarning, "FailedCreate", ""}, "")
			}
		},
		"ReplicaSet web was written 9 times": func(w *cluster.World, _ *Judge) {
			for i := range retriesAtFirst + 1 {
				require.NoError(t, cluster.Change(w, cluster.OperatorActor, "status", set, func(s *appsv1.ReplicaSet) { s.Status.Replicas = int32(i + 1) }))
			}
		},
		"pod web-0 is kept out of service for 3m0s": func(w *cluster.World, j *Judge) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "web-0", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
			}}
			for kind, status := range map[corev1.PodConditionType]corev1.ConditionStatus{
				contract.InPlaceUpdateReady: corev1.ConditionFalse, corev1.ContainersReady: corev1.ConditionTrue,
			} {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: w.Stamp()})
			}
			w.Add(pod)
			w.Later(3*time.Minute, func() { j.serve(nil) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := nodes.New(cluster.Options{Calm: true}, set)
			disturb(w.Cluster(), Watch(w.Cluster(), refused))
			require.Len(t, w.Violations(), 1)
			assert.Contains(t, w.Violations()[0], name)
		})
	}
}

func TestRightsOfWrites(t *testing.T) {
	for kind, right := range map[string]string{
		"create Pod": "create Pod", "patch owners of ControllerRevision": "patch ControllerRevision",
		"patch status of Workload": "patch Workload/status", "patch resize of Pod": "patch Pod/resize",
	} {
		assert.Equal(t, right, Right(kind))
	}
}

// A pod left service for nothing where nothing of its spec was written before it came back, and only then. It may
// leave once for each kind of request that is refused: the first refusal cannot be foreseen.
func TestQuietTellsWhatPodsLeaveServiceFor(t *testing.T) {
	status, spec := "patch status of Pod", "patch spec of Pod"
	for _, c := range []struct {
		updates, want int
		refused       [2]string
		codes         [2]int
	}{
		{updates: 0, refused: [2]string{status, status}, want: 1},
		{updates: 0, refused: [2]string{spec, status}, want: 0},
		{updates: 0, refused: [2]string{spec, spec}, codes: [2]int{409, ByBudget}, want: 0},
		{updates: 0, refused: [2]string{spec, spec}, codes: [2]int{409, 409}, want: 1},
		{updates: 1, refused: [2]string{status, status}, want: 0},
		{updates: 2, refused: [2]string{status, status}, want: 0},
	} {
		w := nodes.New(cluster.Options{Calm: true}, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "set"}})
		j := Watch(w.Cluster(), []Refused{{Write: "patch status of Pod", Until: time.Hour}})
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "pod"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:0"}}},
		}
		w.Add(pod)
		serves := func(status corev1.ConditionStatus) {
			require.NoError(t, cluster.Change(w, cluster.OperatorActor, "status", pod, func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: contract.InPlaceUpdateReady, Status: status}}
			}))
		}
		serves(corev1.ConditionTrue)
		for turn := range 2 {
			serves(corev1.ConditionFalse)
			if turn < c.updates {
				require.NoError(t, cluster.Change(w, cluster.OperatorActor, "", pod, func(p *corev1.Pod) { p.Spec.Containers[0].Image += "." }))
			}
			j.count(operator.Request{Object: w.Latest(pod), Kind: c.refused[turn]}, c.codes[turn])
			serves(corev1.ConditionTrue)
		}
		assert.Len(t, w.Violations(), c.want, "%+v", c)
	}
}

// A success of one write to an object ends the pauses of the others: the first turn of an object is the turn of them all.
func TestTheFirstTurnIsThatOfTheObject(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	refused := func(at time.Duration, target string) action.RefusedPurpose {
		return action.RefusedPurpose{Targets: map[string]action.Refusal{target: {Until: begin.Add(at)}}}
	}
	update := action.Purpose{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Update"}
	refresh := action.Purpose{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Refresh"}
	remove := action.Purpose{Verb: action.Delete, Kind: "pod", Reason: "Excess"}
	all := action.Refusals{update: refused(2*time.Minute, "a"), refresh: refused(time.Minute, "a"), remove: refused(time.Second, "a")}
	assert.Equal(t, begin.Add(time.Minute), firstTurn(all, update))
	all[refresh] = refused(time.Minute, "b")
	assert.Equal(t, begin.Add(2*time.Minute), firstTurn(all, update))
}
