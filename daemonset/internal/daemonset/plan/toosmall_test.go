package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// The pod of a node that is too small is tried again once the others are updated.
func TestANodeThatIsTooSmallComesLast(t *testing.T) {
	for name, c := range map[string]struct {
		given *world
		want  []string
	}{
		"others go first":    {given(t, 3, asks("2"), inPlace).old("n1 n2 n3"), []string{"update n2"}},
		"as many as may":     {given(t, 3, asks("2"), inPlace, maxUnavailable("2")).old("n1 n2 n3"), []string{"update n2", "update n1"}},
		"and it is the last": {given(t, 3, asks("2"), inPlace).updated("n1 n2").old("n3"), []string{"update n3"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.given.t, c.given.featureGates.Resize = t, true
			small := action.Refusal{NodeTooSmall: action.NodeTooSmall{Since: now.Add(-time.Hour), Revision: revision.Hash(c.given.revisions[1])}}
			c.given.refused = action.Refusals{{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Update"}: {
				Targets: map[string]action.Refusal{string(c.given.pods[2].UID): small},
			}}
			assert.Equal(t, c.want, c.given.did())
		})
	}
}

// From Kubernetes 1.36 on the server refuses resizes to more than a node has. All other nodes are updated, the pod of the
// small one stays as it is, and the set says so.
func TestANodeThatIsTooSmallHoldsUpNoOther(t *testing.T) {
	for name, options := range map[string][]setOption{"resources": nil, "an image, too": {image("app:2")}} {
		t.Run(name, func(t *testing.T) {
			small := func(pod *corev1.Pod) bool { return eligibility.NodeOf(pod) == "node-3" }
			refuses := func(_ *cluster.World, e cluster.Event) error {
				pod, ok := e.Object.(*corev1.Pod)
				if !ok || e.Subresource != "resize" || !small(pod) {
					return nil
				}
				refused := apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("node node-3 has less cpu than 2"))
				refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: progress.NodeCapacityCause}}
				return refused
			}
			w, p := play(t, cluster.Options{Seed: 1, Calm: true, Admission: refuses}, 5, inPlace, asks("1"), resizeDeadline(30))
			before := map[string]*corev1.Pod{}
			w.After(time.Minute, func() {
				for _, pod := range w.Pods() {
					before[eligibility.NodeOf(pod)] = pod
				}
				edit(w, append(options, asks("2"))...)
			})
			operator := simulate.NewOperator(w, p, simulate.Faults{})
			for range 240 {
				operator.Pass()
				w.Advance(time.Second)
			}
			require.Empty(t, w.Violations(), "the story:\n%s", w.Story())
			for _, pod := range w.Pods() {
				was := before[eligibility.NodeOf(pod)]
				require.NotNil(t, was)
				assert.Equal(t, was.UID, pod.UID, "the story:\n%s", w.Story())
				cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().String()
				if small(pod) {
					assert.Equal(t, was.Spec, pod.Spec)
					assert.True(t, podstate.Of(pod, w.Now(), 0).Available, "it serves")
				} else {
					assert.Equal(t, "2", cpu, "the story:\n%s", w.Story())
				}
			}
			set := present(w)
			assert.EqualValues(t, 4, set.Status.UpdatedNumberScheduled)
			told := conditions.Get(set.Status.Conditions, conditions.Ready)
			assert.Equal(t, conditions.ReasonNodeTooSmall, told.Reason)
			assert.Contains(t, told.Message, "node node-3 has less cpu than 2")
		})
	}
}
