package whatif_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/whatif"
)

// limit is more passes than a rollout of ten pods takes.
const limit = 2000

// tenPods is a CloneSet of ten pods, two of which may be unavailable.
func tenPods() *v1beta1.CloneSet {
	return &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace},
		Spec: v1beta1.CloneSetSpec{
			Replicas: ptr.To[int32](10),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossible, MaxUnavailable: new(intstr.FromString("20%")),
				},
			},
		},
	}
}

// rollout is what happened to the pods after an edit.
type rollout struct {
	batches   []int // pods that were updated in place at the same time, in order
	recreated int
	left      int // pods that the update has not reached
}

// watch follows what the operator does to pods from now on.
func watch(w *nodes.World) *rollout {
	var r rollout
	var last time.Time
	w.OnEvent(func(e cluster.Event) {
		pod, isPod := e.Object.(*corev1.Pod)
		old, existed := e.Old.(*corev1.Pod)
		switch {
		case !isPod || !existed || e.Actor != cluster.OperatorActor:
		case old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil:
			r.recreated++
		case old.Spec.Containers[0].Image != pod.Spec.Containers[0].Image:
			if len(r.batches) == 0 || e.Time.Sub(last) > time.Second {
				r.batches = append(r.batches, 0)
			}
			last = e.Time
			r.batches[len(r.batches)-1]++
		}
	})
	return &r
}

func TestAnEditIsPlayedAsTheOperatorCarriesItOut(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1beta1.CloneSet)
		want rollout
	}{
		"an image goes into running pods, two at a time": {
			func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "app:2" },
			rollout{batches: []int{2, 2, 2, 2, 2}},
		},
		"a port needs new pods": {
			func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			},
			rollout{recreated: 10},
		},
		"a partition ends the rollout after four pods": {
			func(s *v1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Image = "app:2"
				s.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(6))
			},
			rollout{batches: []int{2, 2}, left: 6},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := nodes.New(cluster.Options{Seed: 1, Calm: true}, tenPods())
			o := operator.New(w.Cluster(), whatif.Planner(w.Cluster(), types.NamespacedName{Namespace: gen.Namespace, Name: "web"}), operator.Settings{})
			require.NoError(t, o.Play(limit))
			require.Len(t, w.Pods(), 10)
			began := w.Pods()
			happened := watch(w)
			require.NoError(t, cluster.Change(w, cluster.UserActor, "", tenPods(), c.edit))
			require.NoError(t, o.Play(limit), w.Story())
			set := cluster.Get[*v1beta1.CloneSet](w.View(nil), gen.Namespace, "web")
			for _, pod := range w.Pods() {
				isOld := slices.ContainsFunc(began, func(old *corev1.Pod) bool {
					return old.UID == pod.UID && old.Spec.Containers[0].Image == pod.Spec.Containers[0].Image
				})
				if isOld {
					happened.left++
				}
				assert.True(t, cluster.IsTrue(pod, corev1.PodReady), pod.Name)
			}
			assert.Equal(t, c.want, *happened, w.Story())
			assert.Equal(t, set.Generation, set.Status.ObservedGeneration)
			assert.Empty(t, w.Violations())
		})
	}
}
