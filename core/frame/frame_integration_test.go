package frame_test

import (
	"context"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// snapshot is what the plan of ReplicaSets is given: adopts is its feature gate.
type snapshot struct {
	model.Snapshot[*appsv1.ReplicaSet]
	adopts bool
}

// replicaSets stand for any workload here. Their plan records the template, adopts pods and counts them.
func replicaSets(adopts bool) *frame.Workload[appsv1.ReplicaSet, *appsv1.ReplicaSet, snapshot] {
	return &frame.Workload[appsv1.ReplicaSet, *appsv1.ReplicaSet, snapshot]{
		Name: "replicaset", Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), PodLabel: contract.InstanceIDLabel,
		Cached:        map[client.Object]cache.ByObject{&corev1.Pod{}: fastclient.PodsWithLabel(contract.InstanceIDLabel)},
		ClusterCached: map[client.Object]cache.ByObject{&corev1.Node{}: fastclient.Nodes()},
		Describe: func(set *appsv1.ReplicaSet) frame.Set {
			return frame.Set{Selector: set.Spec.Selector, Template: &set.Spec.Template}
		},
		IsMember:          func(_ *appsv1.ReplicaSet, pod string) bool { return pod != "stranger" },
		DefaultPullPolicy: podspec.ServerDefault,
		HashLabel:         contract.RevisionLabel,
		HashClaims:        true,
		Snapshot: func(_ context.Context, _ *frame.Controller, seen model.Snapshot[*appsv1.ReplicaSet]) (snapshot, error) {
			return snapshot{Snapshot: seen, adopts: adopts}, nil
		},
		Compute: func(s snapshot) model.Plan {
			p := model.Plan{Plan: action.Plan{Now: s.Now, Refusals: s.Refusals}}
			p.Add(action.Step{Name: "revision", Actions: revision.RecordActions(s.Chosen)})
			for _, pod := range s.Orphans {
				if s.adopts {
					p.Add(action.Step{Name: "own", Actions: []action.Action{ownership.AdoptPod(pod, s.Owner, nil, "it is a member")}})
				}
			}
			return p
		},
		Status: func(set *appsv1.ReplicaSet, s snapshot, _ model.Plan, _ action.Failures) {
			set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, int32(len(s.Pods))
		},
	}
}

func TestAWorkloadIsReadPlannedAndTold(t *testing.T) {
	env.Need(t)
	w := replicaSets(true)
	mgr := env.Manager(t, func(o *ctrlmanager.Options) { o.Cache = w.CacheOptions("") })
	require.NoError(t, w.SetUp(t.Context(), mgr, pass.Settings{UserAgent: "test"}))
	env.Start(t, mgr)

	c := env.Client(t)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace(t)},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
		},
	}
	require.NoError(t, c.Create(t.Context(), set))
	reaches := func(pods int32) {
		t.Helper()
		await.Until(t, func(check *assert.CollectT) {
			require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			assert.Equal(check, []any{set.Generation, pods}, []any{set.Status.ObservedGeneration, set.Status.Replicas})
		})
	}
	reaches(0)
	var revisions appsv1.ControllerRevisionList
	require.NoError(t, c.List(t.Context(), &revisions, client.InNamespace(set.Namespace)))
	require.Len(t, revisions.Items, 1)
	assert.True(t, metav1.IsControlledBy(&revisions.Items[0], set))
	assert.Equal(t, map[string]string{"app": "web", contract.RevisionLabel: revision.Hash(&revisions.Items[0])}, revisions.Items[0].Labels)
	assert.Contains(t, revisions.Items[0].Annotations, contract.VolumeClaimTemplateHashAnnotation)

	for _, name := range []string{"member", "stranger"} { // the set is woken by pods that its selector matches
		pod := gen.Pod(name, gen.Label("app", "web"), gen.Label(contract.InstanceIDLabel, name), gen.Image("main", "app:1"))
		pod.Namespace, pod.UID, pod.ResourceVersion, pod.Status = set.Namespace, "", "", corev1.PodStatus{}
		require.NoError(t, c.Create(t.Context(), pod))
	}
	reaches(1)
	var pod corev1.Pod
	require.NoError(t, c.Get(t.Context(), types.NamespacedName{Namespace: set.Namespace, Name: "member"}, &pod))
	assert.True(t, metav1.IsControlledBy(&pod, set))

	assert.Equal(t, []float64{1}, unavailable(t, set))
	require.NoError(t, c.Delete(t.Context(), set))
	await.Until(t, func(check *assert.CollectT) { assert.Empty(check, unavailable(t, set)) })
}

// unavailable returns what the metric of unavailable pods says of the set.
func unavailable(t *testing.T, set *appsv1.ReplicaSet) (values []float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == "flotilla_workload_unavailable_pods" && labels["namespace"] == set.Namespace && labels["name"] == set.Name {
				values = append(values, m.GetGauge().GetValue())
			}
		}
	}
	return values
}

func TestAnOperatorOfOneNamespaceCachesThatOneOnly(t *testing.T) {
	for kind, cached := range replicaSets(false).CacheOptions("shop").ByObject {
		if _, ofCluster := kind.(*corev1.Node); ofCluster {
			assert.True(t, cached.Field.Empty())
			continue
		}
		assert.Equal(t, "metadata.namespace=shop", cached.Field.String(), "%T", kind)
	}
}

func TestAnOperatorHasItsFlags(t *testing.T) {
	added := func(f *pflag.FlagSet) { f.Bool("of-the-feature", false, "") }
	gates := func(*manager.Environment, inplace.Options) bool { return true }
	o := frame.Operator(manager.Operator{Feature: "web", Flags: added}, gates, replicaSets, nil)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Flags(flags)
	require.NotNil(t, flags.Lookup("of-the-feature"))
	workers := flags.Lookup("web-workers")
	require.NotNil(t, workers)
	assert.Equal(t, []string{"3", "how many ReplicaSets are reconciled at a time"}, []string{workers.DefValue, workers.Usage})
}
