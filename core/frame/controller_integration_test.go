package frame_test

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/internal/controllers/freshness"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// givenController returns a controller of ReplicaSets, which stand for any workload here.
func givenController(t *testing.T) *frame.Controller {
	t.Helper()
	pods := fastclient.PodsWithLabel(contract.InstanceIDLabel)
	cached := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: pods, &appsv1.ControllerRevision{}: fastclient.Revisions("apps"), &corev1.Node{}: fastclient.Nodes(),
	}}
	mgr := env.Manager(t, func(o *manager.Options) { o.Cache = cached })
	c, err := frame.NewController(t.Context(), mgr, frame.Options{
		Settings: pass.Settings{UserAgent: "test"}, Controller: t.Name(), EventSource: "test", Kind: &appsv1.ReplicaSet{}, Cache: cached, PodLabel: contract.InstanceIDLabel,
	})
	require.NoError(t, err)
	env.Start(t, mgr)
	return c
}

func givenOwner(t *testing.T, c client.Client) *appsv1.ReplicaSet {
	t.Helper()
	owner := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace(t)},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
		},
	}
	require.NoError(t, c.Create(t.Context(), owner))
	return owner
}

// The parts work together: what the executor wrote holds up the next pass until the reader shows it.
func TestWritesAreSeenBeforeTheNextPass(t *testing.T) {
	env.Need(t)
	controller := givenController(t)
	owner := givenOwner(t, env.Client(t))
	name := client.ObjectKeyFromObject(owner)
	await.Until(t, func(check *assert.CollectT) { assert.Zero(check, controller.Freshness.Wait(t.Context(), name)) })
	pod := gen.Pod("web-1", gen.Namespaced(owner.Namespace), gen.OwnedBy(owner), gen.Image("main", "app:1"), gen.Label(contract.InstanceIDLabel, "1"))
	pod.UID, pod.ResourceVersion, pod.Status = "", "", corev1.PodStatus{}
	done := controller.Executor.Run(t.Context(), owner, []action.Step{{Name: "make", Actions: []action.Action{{Verb: action.Create, Object: pod}}}})
	require.NoError(t, done.Err)
	await.Until(t, func(check *assert.CollectT) { assert.Zero(check, controller.Freshness.Wait(t.Context(), name)) })
	pods, err := fastclient.Controlled[corev1.Pod](t.Context(), controller.Reader, owner)
	require.NoError(t, err)
	require.Len(t, pods, 1)
	assert.Nil(t, controller.NodeLabels(t.Context())("unknown"))
}

// A set whose spec cannot be followed still has to look after pods, for instance at the end of a grace period.
func TestASpecThatCannotBeFollowedKeepsTheNextLook(t *testing.T) {
	env.Need(t)
	controller, owner := givenController(t), givenOwner(t, env.Client(t))
	wrong := errors.New("not a number")
	w := replicaSets(false)
	w.Compute = func(snapshot) model.Plan { return model.Plan{Err: wrong, Plan: action.Plan{RequeueAfter: time.Second}} }
	await.Until(t, func(check *assert.CollectT) {
		made, err := w.Look(t.Context(), controller, client.ObjectKeyFromObject(owner))
		require.NoError(check, err)
		assert.Equal(check, wrong, made.Err)
		assert.Equal(check, time.Second, made.Plan.RequeueAfter)
	})
}

// A template that differs from a stored one only in what the server adds is the same.
func TestHistoryAsksTheServerForItsDefaults(t *testing.T) {
	env.Need(t)
	controller, c := givenController(t), env.Client(t)
	owner := givenOwner(t, c)
	stored, err := controller.Templates.Default(t.Context(), owner.Namespace, &owner.Spec.Template)
	require.NoError(t, err)
	r, err := revision.New(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), stored, 1, 0)
	require.NoError(t, err)
	r.UID = types.UID("r")
	in := revision.Input{
		Owner: owner, Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Template: &owner.Spec.Template,
		DefaultPullPolicy: podspec.ServerDefault, Owned: []*appsv1.ControllerRevision{r},
	}
	choice, err := controller.History.Choose(t.Context(), in)
	require.NoError(t, err)
	assert.Same(t, r, choice.Update)
	assert.False(t, choice.Create)
}

// An answer is kept until the workload, its revisions or what its status says of them change.
func TestHistoryRemembersUntilSomethingChanges(t *testing.T) {
	env.Need(t)
	controller, c := givenController(t), env.Client(t)
	owner := givenOwner(t, c)
	kind := appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	r, err := revision.New(owner, kind, &owner.Spec.Template, 1, 0)
	require.NoError(t, err)
	asked := 0
	choose := func(change func(*revision.Input)) int {
		before := asked
		in := revision.Input{Owner: owner.DeepCopy(), Kind: kind, Template: &owner.Spec.Template, Owned: []*appsv1.ControllerRevision{r.DeepCopy()}}
		in.Same = func(*corev1.PodTemplateSpec, *corev1.PodTemplateSpec) bool { asked++; return true }
		change(&in)
		_, err := controller.History.Choose(t.Context(), in)
		require.NoError(t, err)
		return asked - before
	}
	same := func(*revision.Input) {}
	assert.Equal(t, 1, choose(same))
	assert.Equal(t, 0, choose(same))
	assert.Equal(t, 1, choose(func(in *revision.Input) { in.Owner.(*appsv1.ReplicaSet).Generation = 99 }))
	assert.Equal(t, 1, choose(func(in *revision.Input) { in.Owned[0].ResourceVersion = "99" }))
	assert.Equal(t, 1, choose(func(in *revision.Input) { in.Current = "web-x" }))
	controller.Forget(client.ObjectKeyFromObject(owner))
	assert.Equal(t, 1, choose(same))
}

func TestServersOfTodayResizePods(t *testing.T) {
	env.Need(t)
	serves, keepsMemoryLimits, err := frame.Resizes(env.Config)
	require.NoError(t, err)
	assert.True(t, serves)
	assert.False(t, keepsMemoryLimits)
}

// A store of nodes that lags behind the lease would have pods deleted of nodes that it does not know.
func TestANewLeaderWaitsForTheKindsThatItsPlansRestOn(t *testing.T) {
	release, won := make(chan struct{}), make(chan string, 1)
	late := fastclient.Nodes()
	trim := late.Transform
	late.Transform = func(o any) (any, error) {
		if node, ok := o.(*corev1.Node); ok && node.Name == "late" {
			<-release
		}
		return trim(o)
	}
	fence := freshness.NewFence(func(ctx context.Context) (string, error) {
		select {
		case version := <-won:
			return version, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	fenced := map[client.Object]cache.ByObject{&corev1.Node{}: late}
	cached := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: fastclient.PodsWithLabel(contract.InstanceIDLabel), &appsv1.ControllerRevision{}: fastclient.Revisions("apps"),
	}}
	maps.Copy(cached.ByObject, fenced)
	mgr := env.Manager(t, func(o *manager.Options) { o.Cache = cached })
	controller, err := frame.NewController(t.Context(), mgr, frame.Options{
		Settings: pass.Settings{UserAgent: "test", Fence: fence}, Controller: t.Name(), EventSource: "test", Kind: &appsv1.ReplicaSet{},
		Cache: cached, Fenced: fenced, PodLabel: contract.InstanceIDLabel,
	})
	require.NoError(t, err)
	env.Start(t, mgr)

	c, node := env.Client(t), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	require.NoError(t, c.Create(t.Context(), node))
	t.Cleanup(func() { _ = c.Delete(context.Background(), node) })
	won <- node.ResourceVersion
	var released atomic.Bool
	time.AfterFunc(2*time.Second, func() { // other stores have been compared by then
		released.Store(true)
		close(release)
	})
	await.Until(t, func(collect *assert.CollectT) {
		assert.Zero(collect, controller.Freshness.Wait(t.Context(), types.NamespacedName{Namespace: "any", Name: "web"}))
	})
	assert.True(t, released.Load(), "passes run before the store knows all nodes")
}
