package testenv_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
