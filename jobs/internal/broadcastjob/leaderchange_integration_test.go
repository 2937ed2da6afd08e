package broadcastjob_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/setup"
)

// A leader is cut off from its Lease in the middle of a batch. Its writes that are under way arrive as late as they can,
// and the watch of the next leader is late, too. No node runs two pods, never more run than may, and the job ends.
func TestALeaderLosesItsLeaseInTheMiddleOfABatch(t *testing.T) {
	env.Need(t)
	const parallelism = 3
	c, names, namespace := env.Client(t), givenNodes(t, "", 6), env.Namespace(t)
	history := faults.Record(t, env, namespace)
	var job *v1beta1.BroadcastJob
	landed := operators.NewReplicas(t, &env, setup.Operator, namespace).ChangeLeader(t, 2, func() {
		job = givenJob(t, c, succeeds, func(job *v1beta1.BroadcastJob) {
			job.Namespace, job.Spec.Parallelism = namespace, new(intstr.FromInt(parallelism))
		})
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseCompleted)(collect, job)
		assert.EqualValues(collect, len(names), job.Status.Succeeded)
	})
	assert.Positive(t, landed(), "no write was under way")
	history.Replay(t, func(pods []*corev1.Pod) {
		active := 0
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodSucceeded {
				active++
			}
		}
		assert.LessOrEqual(t, active, parallelism)
	})
	for node, pods := range podsOf(t.Context(), t, c, job) {
		assert.Contains(t, names, node)
		require.Len(t, pods, 1, node)
	}
}
