package story

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
)

// KillAgents deletes the pods of the feature's node agent without a grace period. They are replaced. No story may run
// in parallel.
func (w World) KillAgents(t *testing.T, feature string) {
	t.Helper()
	require.NoError(t, w.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(install.Namespace),
		client.MatchingLabels{"app.kubernetes.io/name": feature + "-agent"}, client.GracePeriodSeconds(0)))
}

// KeepAgentsAway deletes the pods of the feature's node agent and prevents new ones until the end of the test. No story
// may run in parallel.
func (w World) KeepAgentsAway(t *testing.T, feature string) {
	t.Helper()
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: feature + "-agent"}}
	onlyOn := func(ctx context.Context, nodes string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"nodeSelector":`+nodes+`}}}}`))
		require.NoError(t, w.Client.Patch(ctx, set, patch))
	}
	onlyOn(t.Context(), `{"agents":"none"}`)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		onlyOn(ctx, "null")
		eventually(ctx, t, "the agents of "+feature, func(ctx context.Context) error {
			err := w.Client.Get(ctx, client.ObjectKeyFromObject(set), set)
			s := &set.Status
			return Want(err == nil && s.ObservedGeneration == set.Generation && s.NumberReady > 0 && s.NumberReady == s.DesiredNumberScheduled,
				"status is %+v (%v)", s, err)
		})
	})
	w.KillAgents(t, feature)
}
