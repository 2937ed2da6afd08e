package imagepulljob_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob"
)

const (
	userAgent = "jobs-manager/imagepulljob"
	config    = "kruise-daemon-config"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs: []string{"../../config/crd/imagepulljobs.yaml"}, Scheme: testenv.Scheme(v1beta1.AddToScheme, nodeimage.AddToScheme),
	})
}

// definition returns the CRD of NodeImage, and makes the namespace that module daemon brings as well.
func definition(t *testing.T) envtest.CRDInstallOptions {
	t.Helper()
	env.Need(t)
	raw, err := os.ReadFile("testdata/nodeimages.yaml")
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(raw, crd))
	env.Share(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config}})
	return envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}
}

// givenNodeImages has the cluster serve NodeImage.
func givenNodeImages(t *testing.T) {
	t.Helper()
	env.InstallCRDs(t, definition(t))
}

// givenController runs the controller until the end of the test.
func givenController(t *testing.T) client.Client {
	t.Helper()
	givenNodeImages(t)
	return givenControllerOf(t, env)
}

func givenControllerOf(t *testing.T, env testenv.Environment) client.Client {
	t.Helper()
	return env.Control(t, fastclient.CacheOptions("", nil), func(mgr manager.Manager, reader fastclient.Options) error {
		return imagepulljob.SetUp(t.Context(), mgr, imagepulljob.Options{
			Settings: pass.Settings{Reader: reader, UserAgent: userAgent}, TTL: 300 * time.Second, ConfigNamespace: config,
		})
	})
}

// givenNodes makes NodeImages with a label of the test, and removes them at its end.
func givenNodes(t *testing.T, c client.Client, n int) (names []string) {
	t.Helper()
	for i := range n {
		image := &nodeimage.NodeImage{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", env.Namespace(t), i), Labels: map[string]string{"test": labelOf(t)},
		}}
		require.NoError(t, c.Create(t.Context(), image))
		t.Cleanup(func() {
			require.NoError(t, client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), image)))
		})
		names = append(names, image.Name)
	}
	return names
}

func labelOf(t *testing.T) string {
	t.Helper()
	return strings.NewReplacer("/", "-").Replace(t.Name())
}

// givenAgents answers what the NodeImages ask for, as the agents of their nodes do, until the test ends.
func givenAgents(t *testing.T, c client.Client, phase nodeimage.ImagePullPhase) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var list nodeimage.NodeImageList
			if c.List(ctx, &list, client.MatchingLabels{"test": labelOf(t)}) == nil {
				for i := range list.Items {
					answer(ctx, c, &list.Items[i], phase)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func answer(ctx context.Context, c client.Client, o *nodeimage.NodeImage, phase nodeimage.ImagePullPhase) {
	before := o.DeepCopy()
	o.Status.ImageStatuses = map[string]nodeimage.ImageStatus{}
	for name, spec := range o.Spec.Images {
		var tags []nodeimage.ImageTagStatus
		for _, tag := range spec.Tags {
			tags = append(tags, nodeimage.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: phase, Message: "no such image"})
		}
		o.Status.ImageStatuses[name] = nodeimage.ImageStatus{Tags: tags}
	}
	_ = c.Status().Patch(ctx, o, client.MergeFrom(before)) // a conflict is answered in the next round
}

// givenJob makes a job for nginx on the nodes of the test.
func givenJob(t *testing.T, c client.Client, namespace string, changes ...func(*v1beta1.ImagePullJob)) *v1beta1.ImagePullJob {
	t.Helper()
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "warm"}}
	job.Spec.Image = "nginx:1.25"
	job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"test": labelOf(t)}}}
	for _, change := range changes {
		change(job)
	}
	require.NoError(t, c.Create(t.Context(), job))
	return job
}

// eventually reads the job until the assertions about it hold.
func eventually(t *testing.T, c client.Client, job *v1beta1.ImagePullJob, check func(*assert.CollectT, *v1beta1.ImagePullJob)) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		var now v1beta1.ImagePullJob
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(job), &now))
		check(collect, &now)
	})
}

func completed(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
	assert.Equal(collect, "job has completed", job.Status.Message)
}

// givenSecret makes a pull secret.
func givenSecret(t *testing.T, c client.Client, namespace string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "registry"},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
	}
	require.NoError(t, c.Create(t.Context(), secret))
	return secret
}

// copiesOf returns the copies of the pull secret of a namespace.
func copiesOf(ctx context.Context, t require.TestingT, c client.Client, namespace string) (found []corev1.Secret) {
	list := &corev1.SecretList{}
	require.NoError(t, c.List(ctx, list, client.InNamespace(config)))
	for _, s := range list.Items {
		if s.Annotations[v1beta1.SecretSourceAnnotation] == namespace+"/registry" {
			found = append(found, s)
		}
	}
	return found
}
