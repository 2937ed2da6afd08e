package whatif

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/informers"
	"github.com/flotilla-project/flotilla/core/simulation/workloads"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget"
)

// newCache returns a reader of the world as it is, through the cache that the operator has.
func newCache(w *cluster.World) *fastclient.Reader {
	c := informers.New(w, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:                   podunavailablebudget.Pods(""),
		&v1beta1.PodUnavailableBudget{}: {Transform: stored},
	}})
	_ = cover.AddIndexes(quiet(), c) // it takes every index
	c.Show(w.View(nil))              // a view without a lag shows what is there when it is read
	return fastclient.NewReader(c, runtime.NewScheme(), fastclient.Options{})
}

// stored returns a budget in the version that the operator reads. One that is none in any version stays as it is, and the
// operator does not see it.
func stored(o any) (any, error) {
	if _, ok := o.(*v1beta1.PodUnavailableBudget); ok {
		return o, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return o, nil //nolint:nilerr // no budget
	}
	if raw, err = conversion.Convert(raw, v1beta1.GroupVersion.String()); err != nil {
		return o, nil //nolint:nilerr // no budget
	}
	b := &v1beta1.PodUnavailableBudget{}
	if err := json.Unmarshal(raw, b); err != nil {
		return o, nil //nolint:nilerr // no budget
	}
	return b, nil
}

// targets reads the workloads of the world.
type targets struct {
	workloads.Reader
}

// Caches implements cover.Targets: the world shows every change.
func (targets) Caches(schema.GroupKind) bool { return true }

// IsClusterScoped implements cover.Targets. The owners of pods are in their namespaces.
func (targets) IsClusterScoped(schema.GroupKind) bool { return false }

// livePods reads pods from the world.
type livePods struct {
	client.Reader // nil: nothing else is read from the server

	world *cluster.World
}

var errNotPod = errors.New("only pods are read from the server")

// Get reads a pod.
func (l livePods) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return errNotPod
	}
	found := cluster.Get[*corev1.Pod](l.world.View(nil), key.Namespace, key.Name)
	if found == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	*pod = *found
	return nil
}

// quiet is a context whose logs go nowhere: the state of a budget tells what happened.
func quiet() context.Context {
	return log.IntoContext(context.Background(), logr.Discard()) //nolint:forbidigo // the requests of a world have no context
}
