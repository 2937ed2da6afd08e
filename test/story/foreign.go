package story

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
)

// crowd is the number of objects of each kind that others make.
const crowd = 10

// LeavesOthersAlone checks that the feature's webhooks are never called for objects of others, whether its manager runs
// or not, by the API server's count of calls. An object of the feature shows that calls are counted. The story must not
// run in parallel with others.
func (w World) LeavesOthersAlone(t *testing.T, feature string, own func(namespace string) client.Object) {
	t.Helper()
	w.awaitTheEndOfOthers(t)
	namespace := w.Namespace(t)

	before := w.lastWebhookCalls(t)
	w.crowd(t, "running")
	assert.Equal(t, before, w.webhookCalls(t), "a webhook was asked while the manager ran")
	require.NoError(t, w.Client.Create(t.Context(), own(namespace)))
	require.NotEqual(t, before, w.webhookCalls(t), "calls are not counted")

	w.ScaleOperator(t, feature, 0)
	t.Cleanup(func() {
		w.ScaleOperator(t, feature, 1)
		eventually(context.WithoutCancel(t.Context()), t, "the answer of the new manager", func(ctx context.Context) error {
			again := own(namespace)
			again.SetName("again")
			return w.Client.Create(ctx, again, client.DryRunAll)
		})
	})
	before = w.lastWebhookCalls(t)
	w.crowd(t, "dead")
	assert.Equal(t, before, w.webhookCalls(t), "a webhook was asked while there was no manager")
	other := own(namespace)
	other.SetName("unjudged")
	require.Error(t, w.Client.Create(t.Context(), other), "an object of the operator's own is checked by nobody")
	require.NotEqual(t, before, w.webhookCalls(t), "calls in vain are not counted")
}

// webhookCalls returns the number of calls of each admission webhook by the API server, by labels.
func (w World) webhookCalls(t *testing.T) Samples {
	t.Helper()
	calls, err := w.countWebhookCalls(t.Context())
	require.NoError(t, err)
	return calls
}

func (w World) countWebhookCalls(ctx context.Context) (Samples, error) {
	served, err := w.serverMetrics(ctx)
	return served.Of("apiserver_admission_webhook_admission_duration_seconds_count"), err
}

// lastWebhookCalls returns webhookCalls when the counts no longer change.
func (w World) lastWebhookCalls(t *testing.T) Samples {
	t.Helper()
	last, since := w.webhookCalls(t), time.Now()
	Eventually(t, "the end of calls of webhooks", func(ctx context.Context) error {
		now, err := w.countWebhookCalls(ctx)
		if err == nil && !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		return Want(err == nil && time.Since(since) > time.Second, "there was one a moment ago (%v)", err)
	})
	return last
}

// crowd makes, changes and deletes objects of others in a namespace of their own, and waits until the controllers of
// Kubernetes have made the pods of their workloads. The first request that is refused fails the test.
func (w World) crowd(t *testing.T, name string) {
	t.Helper()
	namespace := w.Namespace(t)
	var all []client.Object
	for i := range crowd {
		all = append(all, foreigners(namespace, fmt.Sprintf("%s-%d", name, i))...)
	}
	for _, o := range all {
		require.NoError(t, w.Client.Create(t.Context(), o), "create %T", o)
	}
	for _, o := range all {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.io/changed":"yes"}}}`))
		require.NoError(t, w.Client.Patch(t.Context(), o, patch), "patch %T", o)
	}
	const workloads = 4 // a Deployment, a ReplicaSet, a StatefulSet and a Job make a pod each
	Eventually(t, "the pods of others", func(ctx context.Context) error {
		pods, err := w.pods(ctx, namespace)
		return Want(err == nil && len(pods) == crowd*(1+workloads), "there are %d (%v)", len(pods), err)
	})
	for _, o := range all {
		require.NoError(t, w.Client.Delete(t.Context(), o), "delete %T", o)
	}
}

// foreigners returns objects of common kinds. Their pods fit on no node, so that they cost nothing.
func foreigners(namespace, name string) []client.Object {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	labels := map[string]string{"app": name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	pod := corev1.PodSpec{
		NodeSelector: map[string]string{"example.io/node": "none"},
		Containers:   []corev1.Container{{Name: "main", Image: "example.io/app:1"}},
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}
	job := batchv1.JobSpec{Template: *template.DeepCopy()}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	one := func(kind string) metav1.ObjectMeta {
		m := *meta.DeepCopy()
		m.Name += "-" + kind
		return m
	}
	return []client.Object{
		&corev1.Pod{ObjectMeta: meta, Spec: pod},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labels}},
		&corev1.ConfigMap{ObjectMeta: meta},
		&corev1.Secret{ObjectMeta: meta},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}},
		&appsv1.Deployment{ObjectMeta: one("deployment"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
		&appsv1.ReplicaSet{ObjectMeta: one("replicas"), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
		&appsv1.StatefulSet{ObjectMeta: one("stateful"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
		&appsv1.DaemonSet{ObjectMeta: one("daemons"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		&appsv1.ControllerRevision{ObjectMeta: meta, Data: runtime.RawExtension{Raw: []byte("{}")}},
		&batchv1.Job{ObjectMeta: one("job"), Spec: job},
		&batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: new(intstr.FromInt32(1))}},
		&autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{
				Kind:       "Deployment",
				Name:       "absent",
				APIVersion: "apps/v1",
			},
			MaxReplicas: 2,
		}},
		&coordinationv1.Lease{ObjectMeta: meta},
	}
}

// ScaleOperator sets the replicas of the feature's manager, and waits until exactly that many pods exist and are ready.
func (w World) ScaleOperator(t *testing.T, feature string, replicas int32) {
	t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: feature + "-manager", Namespace: install.Namespace}}
	ctx := context.WithoutCancel(t.Context()) // also at the end of a test
	w.away.Store(replicas == 0)
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	require.NoError(t, w.Client.Patch(ctx, deployment, patch))
	pods := &corev1.PodList{}
	eventually(ctx, t, fmt.Sprintf("%d pods of %s", replicas, feature), func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		err := w.Client.List(ctx, pods, client.InNamespace(install.Namespace), client.MatchingLabels{"app.kubernetes.io/name": feature + "-manager"})
		return Want(err == nil && len(pods.Items) == int(replicas) && deployment.Status.ReadyReplicas == replicas,
			"there are %d, %d of them ready (%v)", len(pods.Items), deployment.Status.ReadyReplicas, err)
	})
}

// awaitTheEndOfOthers waits until the objects of earlier stories are deleted.
func (w World) awaitTheEndOfOthers(t *testing.T) {
	t.Helper()
	Eventually(t, "the end of other stories", func(ctx context.Context) error {
		list := &corev1.NamespaceList{}
		err := w.Client.List(ctx, list)
		ending := slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return n.DeletionTimestamp != nil })
		return Want(err == nil && !ending, "a namespace is being deleted (%v)", err)
	})
}
