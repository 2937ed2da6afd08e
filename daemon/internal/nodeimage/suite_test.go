package nodeimage_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage"
)

const (
	userAgent = "daemon-manager/nodeimage"
	delay     = 30 * time.Second
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{"../../config/crd/nodeimages.yaml"}, Scheme: testenv.Scheme(v1beta1.AddToScheme)})
}

// givenController runs the controller until the end of the test.
func givenController(t *testing.T) client.Client {
	t.Helper()
	return givenControllerOf(t, env)
}

// givenControllerOf runs the controller in an environment, with a transform of what its cache takes in if one is
// given.
func givenControllerOf(t *testing.T, env testenv.Environment, transform ...toolscache.TransformFunc) client.Client {
	t.Helper()
	cached := cache.Options{
		DefaultTransform: append(transform, fastclient.Trim)[0],
		ByObject:         map[client.Object]cache.ByObject{&corev1.Node{}: fastclient.Nodes()},
	}
	return env.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
		return nodeimage.SetUp(t.Context(), mgr, nodeimage.Options{
			CreationDelay: delay, Settings: pass.Settings{Reader: reader, UserAgent: userAgent},
		})
	})
}

// givenNode makes a node that has been ready for a time.
func givenNode(t *testing.T, c client.Client, name string, ready time.Duration, labels map[string]string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	require.NoError(t, c.Create(t.Context(), node))
	removeAtEnd(t, c, node)
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-ready)),
	}}
	require.NoError(t, c.Status().Update(t.Context(), node))
	return node
}

// givenImage makes a NodeImage that needs no node.
func givenImage(t *testing.T, c client.Client, name string, images map[string]v1beta1.ImageSpec) *v1beta1.NodeImage {
	t.Helper()
	image := &v1beta1.NodeImage{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.FakeNodeImageLabel: "true"}},
		Spec:       v1beta1.NodeImageSpec{Images: images},
	}
	require.NoError(t, c.Create(t.Context(), image))
	removeAtEnd(t, c, image)
	return image
}

// removeAtEnd removes the object and a NodeImage of its name: the controllers of other tests would look after
// them. That of this test has ended by then.
func removeAtEnd(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(c.Delete(ctx, o)))
		image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}}
		require.NoError(t, client.IgnoreNotFound(c.Delete(ctx, image)))
	})
}

// wanted returns a tag that was asked for a time ago and stays for ten minutes after its pull.
func wanted(tag string, ago time.Duration, owners ...corev1.ObjectReference) v1beta1.ImageTagSpec {
	return v1beta1.ImageTagSpec{
		Tag: tag, CreatedAt: new(metav1.NewTime(time.Now().Add(-ago))), OwnerReferences: owners,
		PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(600))},
	}
}

// eventually reads the NodeImage until the assertions about it hold.
func eventually(t *testing.T, c client.Client, name string, check func(*assert.CollectT, *v1beta1.NodeImage)) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		var image v1beta1.NodeImage
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Name: name}, &image))
		check(collect, &image)
	})
}
