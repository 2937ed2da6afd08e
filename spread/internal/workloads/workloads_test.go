package workloads

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

func TestPathsAreSummed(t *testing.T) {
	object := map[string]any{"spec": map[string]any{
		"replicas": int64(5), "text": "x", "groups": []any{map[string]any{"replicas": int64(1)}, map[string]any{"replicas": int64(2)}},
		"negative": int64(-9),
	}}
	for _, c := range []struct {
		paths []string
		want  int32
		err   string
	}{
		{[]string{"spec.replicas"}, 5, ""},
		{[]string{"spec.replicas", "spec.groups.1.replicas"}, 7, ""},
		{[]string{""}, 0, ""},
		{nil, 0, ""},
		{[]string{"spec.groups.2.replicas"}, 0, "2 must be an index of a list of 2"},
		{[]string{"spec.groups.-1.replicas"}, 0, "must be an index"},
		{[]string{"spec.groups.x.replicas"}, 0, "must be an index"},
		{[]string{"spec.none"}, 0, "none is missing"},
		{[]string{"spec.text"}, 0, "the value must be an integer"},
		{[]string{"spec.replicas.x"}, 0, "x is below a single value"},
		{[]string{"spec.negative"}, 0, "invalid number of replicas: the sum is -9"},
	} {
		got, err := Sum(object, c.paths...)
		assert.Equal(t, c.want, got, c.paths)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		assert.NoError(t, err)
	}
}

func TestTheConfigMapIsRead(t *testing.T) {
	all, err := ParseAllowed(`{"workloads":[{"Group":"example.io","version":"v1","KIND":"GameServerSet","replicasPath":"spec.replicas",
		"subResources":[{"Group":"example.io","Version":"v1","Kind":"GameServer"}]}]}`)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, "GameServerSet.example.io", all[0].GroupKind().String())
	assert.Equal(t, "spec.replicas", all[0].ReplicasPath)
	assert.True(t, all[0].between(KindOf(&v1beta1.TargetReference{APIVersion: "example.io/v2", Kind: "GameServer"})))
	_, err = ParseAllowed("{")
	require.ErrorContains(t, err, ConfigMapKey)
	none, err := ParseAllowed("")
	require.NoError(t, err)
	assert.Empty(t, none)
}

// broken answers with a ConfigMap that nobody understands.
type broken struct{ client.Reader }

func (broken) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	m, ok := o.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("asked for a %T", o)
	}
	m.Data = map[string]string{ConfigMapKey: "{"}
	return nil
}

func TestABrokenConfigMapConcernsNoBuiltInKind(t *testing.T) {
	r := &Reader{config: &Config{Live: broken{}, Clock: clock.RealClock{}}}
	for _, kind := range BuiltIn() {
		_, err := r.Between(t.Context(), kind)
		require.NoError(t, err, kind)
		known, err := r.config.Knows(t.Context(), kind)
		require.NoError(t, err, kind)
		assert.True(t, known && r.config.Follows(t.Context(), kind), kind)
	}
	_, err := r.Between(t.Context(), schema.GroupKind{Group: "example.io", Kind: "GameServerSet"})
	assert.ErrorContains(t, err, ConfigMapKey)
}

func TestWhichPodsAScaleSelects(t *testing.T) {
	for name, c := range map[string]struct {
		selector  string
		err       error
		want      string
		published bool
	}{
		"some":             {selector: "app=web", want: "app=web", published: true},
		"not yet":          {},
		"nonsense":         {selector: "app==web==", published: true},
		"no scale":         {err: targets.ErrNoScale, published: true},
		"no right to read": {err: apierrors.NewForbidden(schema.GroupResource{}, "web", nil), published: true},
	} {
		t.Run(name, func(t *testing.T) {
			selector, published, err := selectorOf(targets.Replicas{Selector: c.selector}, c.err)
			require.NoError(t, err)
			assert.Equal(t, c.published, published)
			if c.want == "" {
				assert.Nil(t, selector)
				return
			}
			assert.Equal(t, c.want, selector.String())
		})
	}
	_, _, err := selectorOf(targets.Replicas{}, context.DeadlineExceeded)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestOrdinalsAreRead(t *testing.T) {
	object := map[string]any{"spec": map[string]any{
		"ordinals": map[string]any{"start": int64(3)}, "reserveOrdinals": []any{int64(4), "7-9", "x"},
	}}
	assert.Equal(t, subsets.Ordinals{Start: 3, Reserved: []subsets.Range{{First: 4, Last: 4}, {First: 7, Last: 9}}}, ordinalsOf(object))
	assert.Equal(t, subsets.Ordinals{}, ordinalsOf(map[string]any{}))
}

func TestVersionedKinds(t *testing.T) {
	v, err := ParseVersioned([]string{"Deployment"})
	require.NoError(t, err)
	assert.True(t, v.Of(Deployment) && v.Of(ReplicaSet))
	assert.False(t, v.Of(CloneSet))
	v, err = ParseVersioned([]string{"replicaset", " CloneSet"})
	require.NoError(t, err)
	assert.True(t, v.Of(Deployment), "its pods belong to ReplicaSets")
	assert.True(t, v.Of(CloneSet))
	v, err = ParseVersioned([]string{""})
	require.NoError(t, err)
	assert.Empty(t, v)
	_, err = ParseVersioned([]string{"job"})
	assert.ErrorContains(t, err, `unknown kind "job"`)
}

func TestTheLatestRevision(t *testing.T) {
	v, err := ParseVersioned([]string{"deployment"})
	require.NoError(t, err)
	object := func(kind, hash, revision string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind}}
		o.Labels, o.Annotations = map[string]string{"pod-template-hash": hash}, map[string]string{revisionAnnotation: revision}
		return o
	}
	deployment := object("Deployment", "", "2")
	children := []*metav1.PartialObjectMetadata{object("ReplicaSet", "old", "1"), object("ReplicaSet", "new", "2")}
	assert.Equal(t, "new", latest(deployment, children, v))
	assert.Empty(t, latest(deployment, children[:1], v), "it is not there yet")
	assert.Equal(t, "old", latest(children[0], nil, v))
	assert.Equal(t, v1beta1.VersionIgnored, latest(object("ReplicaSet", "", ""), nil, v), "a ReplicaSet of no Deployment")
	assert.Equal(t, v1beta1.VersionIgnored, latest(object("StatefulSet", "x", ""), nil, v))
}

// server answers with a CloneSet and counts the questions.
type server struct {
	client.Reader
	cloneSet map[string]any
	asked    int
}

func (s *server) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.asked++
	out, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("asked for a %T", o)
	}
	out.Object = runtime.DeepCopyJSON(s.cloneSet)
	return nil
}

// The revision of a CloneSet's new pods is in its status, and counts once its controller has seen the last edit.
func TestTheLatestRevisionOfACloneSet(t *testing.T) {
	v, err := ParseVersioned([]string{"cloneset"})
	require.NoError(t, err)
	s := &server{cloneSet: map[string]any{
		"metadata": map[string]any{"generation": int64(2)},
		"status":   map[string]any{"observedGeneration": int64(1), "updateRevision": "web-old"},
	}}
	r := &Reader{live: s, updates: lru.New(1)}
	set := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid", Generation: 2}}
	set.SetGroupVersionKind(CloneSet.WithVersion("v1beta1"))
	latest := func(v subsets.Versioned) string {
		got, err := r.Latest(t.Context(), set, nil, v)
		require.NoError(t, err)
		return got
	}
	assert.Empty(t, latest(v))
	s.cloneSet["status"] = map[string]any{"observedGeneration": int64(2), "updateRevision": "web-new"}
	assert.Equal(t, "new", latest(v))
	assert.Equal(t, "new", latest(v))
	assert.Equal(t, 2, s.asked, "what is known of a generation is remembered")
	assert.Equal(t, v1beta1.VersionIgnored, latest(nil))
}

func TestSurgeIsAdded(t *testing.T) {
	path := []string{"spec", "surge"}
	for _, c := range []struct {
		surge any
		want  int32
	}{{nil, 10}, {int64(3), 13}, {"25%", 13}, {"0", math.MaxInt32}, {int64(math.MaxInt64), math.MaxInt32}, {int64(-1), 10}} {
		object := map[string]any{"spec": map[string]any{"surge": c.surge}}
		assert.Equal(t, c.want, withSurge(object, path, 10), c.surge)
	}
	for kind, want := range map[schema.GroupKind]bool{Deployment: true, ReplicaSet: true, CloneSet: true, Job: true, {Kind: "GameServerSet"}: false} {
		_, known := surgePath(kind)
		assert.Equal(t, want, known, kind)
	}
}

func TestSelectorKeysAreRead(t *testing.T) {
	selector := map[string]any{"matchLabels": map[string]any{"app": "web"}, "matchExpressions": []any{map[string]any{"key": "tier", "operator": "Exists"}}}
	assert.Equal(t, []string{"app", "tier"}, selectorKeys(map[string]any{"spec": map[string]any{"selector": selector}}))
	assert.Empty(t, selectorKeys(map[string]any{"spec": map[string]any{"selector": "app=web"}}))
	assert.Empty(t, selectorKeys(map[string]any{}))
}

func TestControllersOfTargets(t *testing.T) {
	custom := schema.GroupKind{Group: "example.io", Kind: "GameServerSet"}
	for controller, targets := range map[schema.GroupKind][]schema.GroupKind{
		ReplicaSet: {Deployment, ReplicaSet, custom}, Deployment: {Deployment, custom}, CloneSet: {CloneSet, custom}, custom: {custom},
	} {
		for _, target := range append(BuiltIn(), custom) {
			assert.Equal(t, slices.Contains(targets, target), MayControl(target, controller), "%s of %s", controller, target)
		}
	}
}

// A ReplicaSet that is being deleted has no pods of the Deployment, and what it controls has none either.
func TestWhatIsBeingDeletedStandsBetweenNothing(t *testing.T) {
	object := func(uid, controller types.UID) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}}
		if controller != "" {
			o.OwnerReferences = []metav1.OwnerReference{{UID: controller, Controller: new(true)}}
		}
		return o
	}
	gone := object("gone", "web")
	gone.DeletionTimestamp = &metav1.Time{Time: gen.Epoch()}
	part, whole, stays := object("part", "whole"), object("whole", "web"), object("stays", "web")
	candidates := []*metav1.PartialObjectMetadata{part, gone, object("below", "gone"), whole, stays, object("foreign", "other"), object("free", "")}
	assert.Equal(t, []*metav1.PartialObjectMetadata{whole, stays, part}, below(object("web", ""), candidates))
}
