package imagepulljob_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// A job of OpenKruise goes on where it is: no node pulls again, the copy of its secret is the same, and only statuses
// are written until it ends. Then the copy and the finalizer go, as OpenKruise would have had them go.
func TestWhatOpenKruiseHasMadeIsTakenOver(t *testing.T) {
	givenNodeImages(t)
	c := env.Client(t)
	namespace, names := env.Namespace(t), givenNodes(t, c, 2)
	source := givenSecret(t, c, namespace)
	job := givenJob(t, c, namespace, func(job *v1beta1.ImagePullJob) {
		job.Finalizers = []string{"apps.kruise.io/deletion-protection"}
		job.Spec.PullSecrets, job.Spec.Parallelism = []string{"registry"}, new(intstr.FromInt32(2))
		job.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3))}
		job.Spec.CompletionPolicy.Type, job.Spec.ImagePullPolicy = v1beta1.CompletionAlways, v1beta1.PullIfNotPresent
		job.Spec.SandboxConfig = &v1beta1.SandboxConfig{Labels: map[string]string{"io.kubernetes.image.app": "foo"}}
	})
	now := metav1.Now()
	before := client.MergeFrom(job.DeepCopy())
	job.Status = v1beta1.ImagePullJobStatus{StartTime: &now, Desired: 2, Active: 1, Succeeded: 1, Message: "job is running, progress 50.0%"}
	require.NoError(t, c.Status().Patch(t.Context(), job, before))
	shared := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: config, GenerateName: "registry-", Annotations: map[string]string{
				"imagepulljobs.kruise.io/source-key": namespace + "/registry",
				"imagepulljobs.kruise.io/references": namespace + "/warm",
				"imagepulljobs.kruise.io/mode":       "batch",
			},
		},
		Type: source.Type, Data: source.Data,
	}
	require.NoError(t, c.Create(t.Context(), shared))
	asked(t, c, names[0], job, shared, nodeimage.ImageSucceeded)
	asked(t, c, names[1], job, shared, nodeimage.ImagePulling)
	nodes := versions(t, c, names)
	audit := env.Audit(t)

	givenControllerOf(t, env)
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		assert.Equal(collect, job.Generation, job.Status.ObservedGeneration)
		assert.Equal(collect, [4]int32{2, 1, 1, 0}, [4]int32{job.Status.Desired, job.Status.Active, job.Status.Succeeded, job.Status.Failed})
		assert.Equal(collect, "job is running, progress 50.0%", job.Status.Message)
	})
	assert.Equal(t, []string{"patch imagepulljobs/status"}, audit.Kinds(t, userAgent, namespace))
	assert.Equal(t, nodes, versions(t, c, names), "no NodeImage is written")
	version := shared.ResourceVersion
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(shared), shared))
	assert.Equal(t, version, shared.ResourceVersion, "the copy is the same")

	pulls(t, c, names[1], nodeimage.ImageSucceeded)
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		completed(collect, job)
		assert.Empty(collect, job.Finalizers)
	})
	await.Until(t, func(collect *assert.CollectT) {
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(shared), shared)))
	})
	assert.Zero(t, tagOf(t, c, names[0]).Version, "one round of pulling")
}

// asked has OpenKruise ask a node for the image of a job, and the node answer.
func asked(t *testing.T, c client.Client, name string, job *v1beta1.ImagePullJob, secret *corev1.Secret, phase nodeimage.ImagePullPhase) {
	t.Helper()
	image := &nodeimage.NodeImage{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, image))
	image.Spec.Images = map[string]nodeimage.ImageSpec{"nginx": {
		PullSecrets:   []nodeimage.SecretReference{{Namespace: secret.Namespace, Name: secret.Name, Mode: nodeimage.SecretBatch}},
		SandboxConfig: &nodeimage.SandboxConfig{Labels: job.Spec.SandboxConfig.Labels},
		Tags: []nodeimage.ImageTagSpec{{
			Tag: "1.25", CreatedAt: new(metav1.Now()), ImagePullPolicy: nodeimage.PullIfNotPresent,
			PullPolicy: &nodeimage.ImageTagPullPolicy{TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3)), TTLSecondsAfterFinished: new(int32(2150))},
			OwnerReferences: []corev1.ObjectReference{{
				APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
			}},
		}},
	}}
	require.NoError(t, c.Update(t.Context(), image))
	pulls(t, c, name, phase)
}

// pulls has the agent of a node tell how far it is.
func pulls(t *testing.T, c client.Client, name string, phase nodeimage.ImagePullPhase) {
	t.Helper()
	image := &nodeimage.NodeImage{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, image))
	answer(t.Context(), c, image, phase)
}

// versions returns the resource versions of NodeImages.
func versions(t *testing.T, c client.Client, names []string) (all []string) {
	t.Helper()
	for _, name := range names {
		image := &nodeimage.NodeImage{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, image))
		all = append(all, image.ResourceVersion)
	}
	return all
}

func tagOf(t *testing.T, c client.Client, node string) nodeimage.ImageTagSpec {
	t.Helper()
	image := &nodeimage.NodeImage{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: node}, image))
	require.Len(t, image.Spec.Images["nginx"].Tags, 1)
	return image.Spec.Images["nginx"].Tags[0]
}
