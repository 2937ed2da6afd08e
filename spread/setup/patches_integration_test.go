package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// The cluster judges the pods of the target with each patch; a target that is to come is not waited for.
func TestPatchesAreValidatedWithTheTarget(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	owner := newReplicaSet(namespace, 1)
	create := func(patch string) error {
		s := newSpread(namespace, intstr.FromInt32(1))
		s.Spec.Subsets[1].Patch.Raw = []byte(patch)
		return c.Create(t.Context(), s, client.DryRunAll)
	}
	const wrong = `{"spec":{"containers":[{"name":"main","ports":[{"containerPort":99999}]}]}}`
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, create(`{"spec":{"containers":[{"name":"main","env":[{"name":"ZONE","value":"b"}]}]}}`))
	for patch, want := range map[string]string{
		wrong: "spec.subsets[1].patch.spec.containers[0].ports[0].containerPort: Invalid value",
		`{"spec":{"containers":[{"name":"main","imagePullPolicy":"Now"}]}}`: "spec.subsets[1].patch.spec.containers[0].imagePullPolicy: Unsupported value",
		`{"spec":{"containers":"none"}}`:                                    "spec.subsets[1].patch: Invalid value",
	} {
		err := create(patch)
		assert.True(t, apierrors.IsInvalid(err), "%s: %v", patch, err)
		require.ErrorContains(t, err, want)
	}
	namespace = env.Namespace(t)
	require.NoError(t, create(wrong), "there is no target yet")
}

// Who asks for nodes that there cannot be is told, and gets what was asked for.
func TestSubsetsWithoutNodesForTheTargetAreToldOf(t *testing.T) {
	serve(t)
	c, warnings := env.Warned(t)
	namespace := env.Namespace(t)
	owner := newReplicaSet(namespace, 1)
	owner.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "b"}
	require.NoError(t, c.Create(t.Context(), owner))
	s := newSpread(namespace, intstr.FromInt32(1))
	require.NoError(t, c.Create(t.Context(), s))
	assert.Equal(t, []string{`subset "a": no node matches both the subset and the pod template of the target: zone`}, warnings.Heard())
	testenv.Edit(t, c, s, func(s *v1beta1.WorkloadSpread) {
		s.Spec.Subsets[1].Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	assert.Empty(t, warnings.Heard(), "subset a has not changed")
}

// The server computes the priority of a pod anew that a patch gives another class, and all else that comes from the class.
func TestAPatchGivesAPodThePriorityOfItsClass(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	for name, policy := range map[string]*corev1.PreemptionPolicy{"lower": nil, "never": new(corev1.PreemptNever)} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}, Value: 7, PreemptionPolicy: policy}
		require.NoError(t, c.Create(t.Context(), class))
	}
	owner, s := newReplicaSet(namespace, 3), newSpread(namespace, intstr.FromInt32(1))
	s.Spec.Subsets[0].Patch.Raw = []byte(`{"spec":{"priorityClassName":"` + namespace + `-lower"}}`)
	s.Spec.Subsets[1].Patch.Raw = []byte(`{"spec":{"priorityClassName":"` + namespace + `-never"}}`)
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/1 0/-1")
	for _, want := range []corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever} {
		pod := podOf(owner)
		require.NoError(t, c.Create(t.Context(), pod))
		assert.EqualValues(t, 7, *pod.Spec.Priority)
		assert.Equal(t, want, *pod.Spec.PreemptionPolicy)
	}
}
