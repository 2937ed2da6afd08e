// Package scenes has scenes of clusters for the tests of commands.
package scenes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	cloneset "github.com/flotilla-project/flotilla/cloneset/whatif"
	daemonset "github.com/flotilla-project/flotilla/daemonset/whatif"
	statefulset "github.com/flotilla-project/flotilla/statefulset/whatif"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// Now is when the scenes are.
func Now() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }

// Web is a CloneSet of ten pods, two of which may be unavailable.
const Web = `
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {name: web, namespace: default}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 2}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "app:v1", resources: {requests: {cpu: "1"}}}
`

// NewImage is the edit of most rollouts.
func NewImage(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = "app:v2" }

// Object reads a manifest.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// Settled returns the scene around a workload that runs on three nodes.
func Settled(t testing.TB, text string) *forecast.Scene {
	t.Helper()
	set := typed(t, text)
	w, run := play(t, set, cluster.Options{Calm: true, Begin: Now().Add(-time.Hour)})
	require.NoError(t, run.Play(2000))
	return sceneOf(t, w, set, Now())
}

// Underway returns the scene around a CloneSet some time after an edit of it. Its containers take start until they are ready,
// and from the edit on then.
func Underway(t testing.TB, text string, edit func(*v1beta1.CloneSet), after, start, then time.Duration) *forecast.Scene {
	t.Helper()
	set := typed(t, text)
	took := start
	w, run := play(t, set, cluster.Options{
		Calm:  true,
		Begin: Now(),
		Takes: func(work cluster.Work) time.Duration {
			return forecast.Times{Creating: 2 * time.Second, Starting: took}.Of(work)
		},
	})
	require.NoError(t, run.Play(2000))
	edited := w.Now()
	took = then
	require.NoError(t, w.Edit(cluster.UserActor, "", set, func(o action.Object) { edit(o.(*v1beta1.CloneSet)) }))
	_, err := run.PlayWhile(func() bool { return w.Now().Sub(edited) < after })
	require.NoError(t, err)
	return sceneOf(t, w, set, w.Now())
}

// kinds are the kinds of workloads, by their names.
func kinds(t testing.TB, name string) rehearse.Kind {
	t.Helper()
	kind, err := map[string]func(string) (rehearse.Kind, error){
		"CloneSet": cloneset.Kind, "StatefulSet": statefulset.Kind, "DaemonSet": daemonset.Kind,
	}[name]("")
	require.NoError(t, err)
	return kind
}

// typed returns the workload of a manifest.
func typed(t testing.TB, text string) action.Object {
	t.Helper()
	o := Object(t, text)
	set := kinds(t, o.GetKind()).New()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, set))
	return set
}

// play returns the world of a workload on three nodes, and the operator that runs there.
func play(t testing.TB, set action.Object, options cluster.Options) (*nodes.World, *operator.Operator) {
	t.Helper()
	w := nodes.New(options, set)
	w.AddNodes(3)
	planner := kinds(t, set.GetObjectKind().GroupVersionKind().Kind).Planner(w.Cluster(), cluster.KeyOf(set))
	return w, operator.New(w.Cluster(), planner, operator.Settings{Coalesce: true})
}

// sceneOf returns a world as commands read a cluster.
func sceneOf(t testing.TB, w *nodes.World, set action.Object, now time.Time) *forecast.Scene {
	t.Helper()
	kind, err := workload.KindNamed(set.GetObjectKind().GroupVersionKind().Kind)
	require.NoError(t, err)
	s := &forecast.Scene{
		Kind: kind,
		Now:  now,
		Set:  Untyped(t, w.View(nil).Object(kind.Name, cluster.KeyOf(set))),
	}
	s.Pods = w.Pods()
	s.Nodes = w.Nodes()
	s.Claims = cluster.List[*corev1.PersistentVolumeClaim](w.View(nil))
	s.Revisions = cluster.List[*appsv1.ControllerRevision](w.View(nil))
	return s
}

// Untyped returns a workload as clients read it.
func Untyped(t testing.TB, o action.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: fields}
}
