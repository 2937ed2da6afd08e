package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

func TestAuditCountsWritesByUserAgent(t *testing.T) {
	ns := env.Namespace(t)
	audit := env.Audit(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}

	writer := env.ClientAs(t, "writer/one")
	require.NoError(t, writer.Create(t.Context(), config))
	require.NoError(t, writer.Update(t.Context(), config, client.DryRunAll))
	require.NoError(t, writer.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	require.NoError(t, env.Client(t).Delete(t.Context(), config))

	assert.Equal(t, map[string]int{"create configmaps": 1}, audit.Writes(t, "writer"))
	assert.Equal(t, map[string]int{"delete configmaps": 1}, audit.Writes(t, "test"))
	var got []string
	for _, r := range audit.Requests(t, "writer/one") {
		got = append(got, r.String())
	}
	assert.Equal(t, []string{"create configmaps", "update configmaps", "get configmaps"}, got)
}

// A state that is over before anybody looks is seen, and so is the last one of an object that is gone.
func TestNoStateIsMissed(t *testing.T) {
	c := env.Client(t)
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "a"}}
	require.NoError(t, c.Create(t.Context(), first))
	now := first.DeepCopy()
	for _, value := range []string{"brief", "last"} {
		testenv.Edit(t, c, now, func(o *corev1.ConfigMap) { o.Data = map[string]string{"value": value} })
	}
	require.NoError(t, c.Delete(t.Context(), now))
	for _, value := range []string{"brief", "last"} {
		seen := testenv.Passes(t, &env, first, func(o *corev1.ConfigMap) bool { return o.Data["value"] == value })
		assert.Equal(t, first.UID, seen.UID)
	}
}

func TestManagerServesItsCache(t *testing.T) {
	ns := env.Namespace(t)
	mgr := env.Manager(t)
	_, err := mgr.GetCache().GetInformer(t.Context(), &corev1.Namespace{}, nil...)
	require.NoError(t, err)
	env.Start(t, mgr)

	var got corev1.Namespace
	require.NoError(t, mgr.GetClient().Get(t.Context(), client.ObjectKey{Name: ns}, &got))
	assert.Equal(t, ns, got.Name)
}

func TestWhatATestMakesGoesWithIt(t *testing.T) {
	var ns string
	passed := t.Run("a test", func(t *testing.T) {
		ns = env.Namespace(t)
		require.NoError(t, env.Client(t).Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}))
		require.NoError(t, env.Client(t).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "held", Finalizers: []string{"example.com/nobody"}},
		}))
		require.NoError(t, env.Client(t).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "running"},
			Spec:       corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
		}))
	})
	require.True(t, passed)
	c := env.Client(t)
	assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{})))
	assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: "gone"}, &schedulingv1.PriorityClass{})))
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.PodList{}} {
		require.NoError(t, c.List(t.Context(), list, client.InNamespace(ns)))
		assert.Zero(t, meta.LenList(list))
	}
}

func TestObjectsThatAreLeftBehindAreNamed(t *testing.T) {
	require.NoError(t, env.Client(t).Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "left"}}))
	await.Until(t, func(check *assert.CollectT) { // the server writes its log after its answer
		left, err := testenv.LeftBehind(&env, t.Context())
		require.NoError(check, err)
		assert.Contains(check, left, "priorityclasses.scheduling.k8s.io left of test/"+t.Name())
	})
}

func TestAFailedTestLeavesABundle(t *testing.T) {
	t.Setenv("FLOTILLA_BUNDLES", t.TempDir())
	ns := env.Namespace(t)
	require.NoError(t, env.Client(t).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}))
	env.Manager(t).GetLogger().Info("Started", "what", "manager")
	folder, err := testenv.Bundle(&env, t.Context(), t, ns)
	require.NoError(t, err)
	for file, text := range map[string]string{"configmaps.yaml": "name: a", "operators.log": `{"what": "manager"}`, "events.txt": ""} {
		got, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		assert.Contains(t, string(got), text)
	}
}
