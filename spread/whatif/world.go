package whatif

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/informers"

	"github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/conversion"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread"
)

// system is the operator's own namespace.
const system = "flotilla-system"

// newCache returns a reader of the world as it is, through the cache that the operator has.
func newCache(w *cluster.World) *fastclient.Reader {
	c := informers.New(w, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}:             workloadspread.Pods(""),
		&corev1.Node{}:            fastclient.Nodes(),
		&v1beta1.WorkloadSpread{}: {Transform: stored},
	}})
	_ = workloadspread.AddIndexes(quiet(), c) // it takes every index
	c.Show(w.View(nil))                       // a view without a lag shows the present of each read
	return fastclient.NewReader(c, runtime.NewScheme(), fastclient.Options{})
}

// stored returns a spread in the version that the operator reads. One that is none in any version stays as it is, and the
// operator does not see it.
func stored(o any) (any, error) {
	switch o := o.(type) {
	case *v1beta1.WorkloadSpread:
		return o, nil
	case *v1alpha1.WorkloadSpread:
		o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1beta1.WorkloadSpreadKind)) // an object with a Go type need not show it
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return o, nil //nolint:nilerr // no spread
	}
	if raw, err = conversion.Convert(raw, v1beta1.GroupVersion.String()); err != nil {
		return o, nil //nolint:nilerr // no spread
	}
	s := &v1beta1.WorkloadSpread{}
	if err := json.Unmarshal(raw, s); err != nil {
		return o, nil //nolint:nilerr // no spread
	}
	return s, nil
}

// liveReader reads objects from the world.
type liveReader struct{ world *cluster.World }

// Get reads an object of any kind.
func (l liveReader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	kind := cluster.KindOf(o)
	found := l.world.View(nil).Stored(kind, key)
	if found == nil {
		return apierrors.NewNotFound(cluster.ResourceOf(o), key.Name)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	if err != nil {
		return fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		gvk := u.GroupVersionKind()
		u.Object = runtime.DeepCopyJSON(fields)
		u.SetGroupVersionKind(gvk)
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, o); err != nil {
		return fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	return nil
}

// List lists the objects that the cache lacks: there are none.
func (liveReader) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// never is when a server admitted spreads that the cache does not show.
func never(context.Context, string) time.Time { return time.Time{} }

// quiet is a context whose logs go nowhere: the state of a spread has the outcome.
func quiet() context.Context {
	return log.IntoContext(context.Background(), logr.Discard()) //nolint:forbidigo // the requests of a world have no context
}
