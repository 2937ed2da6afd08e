package targets_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

const later = time.Minute

func TestReplicasOfEachKind(t *testing.T) {
	w := given(t)
	tests := []struct {
		workload string
		want     targets.Replicas
	}{
		{workload("Deployment", "web", "replicas: 3"), targets.Replicas{Spec: 3, Selector: "app=web"}},
		{workload("Deployment", "defaulted", ""), targets.Replicas{Spec: 1, Selector: "app=web"}},
		{workload("Deployment", "empty", "replicas: 0"), targets.Replicas{Spec: 0, Selector: "app=web"}},
		{workload("ReplicaSet", "web", "replicas: 4"), targets.Replicas{Spec: 4, Selector: "app=web"}},
		{workload("StatefulSet", "web", "replicas: 5"), targets.Replicas{Spec: 5, Selector: "app=web"}},
		{"{apiVersion: v1, kind: ReplicationController, metadata: {name: web}, spec: {replicas: 6, selector: {app: web}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx}]}}}}", targets.Replicas{Spec: 6, Selector: "app=web"}},
		{"{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {parallelism: 7, manualSelector: true, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: main, image: nginx}]}}}}", targets.Replicas{Spec: 7, Selector: "app=web"}},
		{fleet, targets.Replicas{Spec: 3}},
		{"{apiVersion: apps.example.com/v1, kind: Deployment, metadata: {name: other}, spec: {replicas: 8}}", targets.Replicas{Spec: 8}},
	}
	for _, test := range tests {
		o := w.create(t, test.workload, nil)
		t.Run(o.GetKind()+" "+o.GetName(), func(t *testing.T) {
			right := func() {
				got, err := w.replicas(t, o)
				require.NoError(t, err)
				assert.Equal(t, test.want, got)
			}
			right()
			asksNothing(t, right)
		})
	}
}

func TestReplicasFollowAnEdit(t *testing.T) {
	w := given(t)
	o := w.create(t, fleet, nil)
	got, err := w.replicas(t, o)
	require.NoError(t, err)
	assert.EqualValues(t, 3, got.Spec)

	w.patch(t, o, `{"spec":{"replicas":8}}`)
	await.Until(t, func(check *assert.CollectT) {
		got, err := w.replicas(t, o)
		require.NoError(check, err)
		assert.EqualValues(check, 8, got.Spec)
	})

	require.NoError(t, w.client.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":5,"labelSelector":"app=web"}}`))))
	asksNothing(t, func() {
		got, err = w.replicas(t, o)
		require.NoError(t, err)
	})
	assert.Equal(t, targets.Replicas{Spec: 8}, got, "a status may be a minute old")
	w.clock.SetTime(w.clock.Now().Add(later))
	got, err = w.replicas(t, o)
	require.NoError(t, err)
	assert.Equal(t, targets.Replicas{Spec: 8, Status: 5, Selector: "app=web"}, got)
}

// Where a selector may be published late, it is read when the workload changes, and no more often than is allowed.
func TestReplicasFollowWhatIsRepublished(t *testing.T) {
	const pause = time.Second
	w := given(t, func(o *targets.Options) {
		o.Republishes, o.RepublishPause = func(kind schema.GroupKind) bool { return kind.Kind == "Fleet" }, pause
	})
	o := w.create(t, fleet, nil)
	got, err := w.replicas(t, o)
	require.NoError(t, err)
	assert.Equal(t, targets.Replicas{Spec: 3}, got)
	asksNothing(t, func() {
		w.clock.SetTime(w.clock.Now().Add(pause))
		_, err = w.replicas(t, o)
		require.NoError(t, err)
	})
	for _, selector := range []string{"app=web", "app=api"} {
		require.NoError(t, w.client.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"labelSelector":%q}}`, selector))))
		w.clock.SetTime(w.clock.Now().Add(pause))
		await.Until(t, func(check *assert.CollectT) {
			got, err = w.replicas(t, o)
			require.NoError(check, err)
			assert.Equal(check, selector, got.Selector)
		})
	}
	require.NoError(t, w.client.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"replicas":1}}`))))
	cached := func() string {
		found, err := w.Get(t.Context(), kindOf(o), client.ObjectKeyFromObject(o))
		require.NoError(t, err)
		return found.ResourceVersion
	}
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, o.GetResourceVersion(), cached()) })
	asksNothing(t, func() {
		got, err = w.replicas(t, o)
		require.NoError(t, err)
	})
	assert.Equal(t, targets.Replicas{Spec: 3, Selector: "app=api"}, got, "it was asked a moment ago")
}

func TestAKindWithoutScale(t *testing.T) {
	w := given(t)
	one, other := w.create(t, crew, nil), w.create(t, "{apiVersion: example.com/v1, kind: Crew, metadata: {name: other}}", nil)
	_, err := w.replicas(t, one)
	require.ErrorIs(t, err, targets.ErrNoScale)
	require.ErrorContains(t, err, "get the scale of Crew.example.com "+w.namespace+"/web: the kind has no scale subresource")
	asksNothing(t, func() {
		for _, o := range []client.Object{one, other} {
			_, err := w.replicas(t, o)
			assert.ErrorIs(t, err, targets.ErrNoScale)
		}
	})

	daemons := w.create(t, workload("DaemonSet", "web", ""), nil)
	audit := env.Audit(t)
	_, err = w.replicas(t, daemons)
	require.ErrorIs(t, err, targets.ErrNoScale)
	for _, r := range audit.Requests(t, agent) {
		assert.NotEqual(t, "scale", r.Object.Subresource, "who may not ask for it is refused, and not told that there is none")
	}
}

// Between two edits the spec is known: that the server does not answer changes nothing.
func TestReplicasStayKnownWhileTheServerRefuses(t *testing.T) {
	w := given(t)
	o := w.create(t, fleet, nil)
	found, err := w.Get(t.Context(), kindOf(o), client.ObjectKeyFromObject(o))
	require.NoError(t, err)
	_, err = w.Replicas(t.Context(), found)
	require.NoError(t, err)

	require.NoError(t, w.client.Delete(t.Context(), o))
	w.clock.SetTime(w.clock.Now().Add(later))
	got, err := w.Replicas(t.Context(), found)
	require.NoError(t, err)
	assert.EqualValues(t, 3, got.Spec)
}

// A DaemonSet learns from the nodes how many pods it wants, so that the number changes without an edit.
func TestWorkloadsWithoutScaleSayHowManyPodsTheyWant(t *testing.T) {
	w := given(t)
	daemons := w.create(t, workload("DaemonSet", "web", ""), nil)
	unscaled := func(o client.Object) (int32, error) {
		found, err := w.Get(t.Context(), kindOf(o), client.ObjectKeyFromObject(o))
		require.NoError(t, err)
		return w.Unscaled(t.Context(), found)
	}
	for _, n := range []int32{4, 6} {
		require.NoError(t, w.client.Status().Patch(t.Context(), daemons, client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
			`{"status":{"desiredNumberScheduled":%d,"currentNumberScheduled":1,"numberMisscheduled":0,"numberReady":0}}`, n))))
		w.clock.SetTime(w.clock.Now().Add(later))
		right := func() {
			got, err := unscaled(daemons)
			require.NoError(t, err)
			assert.Equal(t, n, got)
		}
		right()
		asksNothing(t, right)
	}
	got, err := unscaled(w.create(t, crew, nil))
	require.NoError(t, err)
	assert.EqualValues(t, 3, got)
	_, err = unscaled(w.create(t, "{apiVersion: example.com/v1, kind: Crew, metadata: {name: other}}", nil))
	require.ErrorIs(t, err, targets.ErrNoScale)
}
