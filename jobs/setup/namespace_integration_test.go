package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// An operator of one namespace waits for nothing that is in others, which its caches never show.
func TestAnOperatorOfOneNamespaceWaitsForNoOther(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	served := env.Namespace(t)
	noNode := &v1beta1.ImagePullJobNodeSelector{Names: []string{"none"}} // the nodes belong to other tests
	for _, namespace := range []string{served, env.Namespace(t)} {
		cron := &v1beta1.AdvancedCronJob{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "cron", Annotations: map[string]string{v1beta1.RunNowAnnotation: "now"},
		}}
		cron.Spec.Schedule = "@yearly"
		cron.Spec.Template.JobTemplate = &batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}}}}
		require.NoError(t, c.Create(t.Context(), cron))
		list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "list"}}
		list.Spec.Images, list.Spec.Selector = []string{"nginx"}, noNode
		require.NoError(t, c.Create(t.Context(), list))
		pull := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}}
		pull.Spec.Image, pull.Spec.Selector = "redis", noNode
		require.NoError(t, c.Create(t.Context(), pull))
	}
	operators.Start(t, &env, Operator(), "--namespace="+served)
	await.Until(t, func(collect *assert.CollectT) {
		var cron v1beta1.AdvancedCronJob
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: served, Name: "cron"}, &cron))
		assert.Equal(collect, "now", cron.Status.LastRunNow)
		var pulls v1beta1.ImagePullJobList
		require.NoError(collect, c.List(t.Context(), &pulls, client.InNamespace(served)))
		assert.Len(collect, pulls.Items, 2)
		for i := range pulls.Items {
			assert.Equal(collect, plan.MessageOneNamespace, pulls.Items[i].Status.Message, pulls.Items[i].Name)
		}
	})
}
