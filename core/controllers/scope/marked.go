package scope

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/marks"
)

// Marked returns the source of a scope with the namespaces that have an object of type T, and the namespaces with the
// label for it: pods may be marked there without an object. The scheme knows the kind, and live reads the server.
func Marked[T any, P fastclient.Object[T]](cached cache.Cache, scheme *runtime.Scheme, live client.Reader, label marks.Label) Source {
	reader := fastclient.NewReader(cached, scheme, fastclient.Options{})
	m := &marked{
		cache: cached,
		kind:  P(new(T)),
		label: label,
		list: func(ctx context.Context) (namespaces []string, err error) {
			all, err := fastclient.All[T, P](ctx, reader, "")
			for _, o := range all {
				namespaces = append(namespaces, P(o).GetNamespace())
			}
			return namespaces, err
		},
	}
	return Source{Namespaces: m.namespaces, List: func(ctx context.Context, namespace, version string) (*corev1.PodList, error) {
		pods := &corev1.PodList{}
		at := &metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		return pods, live.List(ctx, pods, client.InNamespace(namespace), &client.ListOptions{Raw: at})
	}}
}

type marked struct {
	cache cache.Cache
	kind  client.Object
	label marks.Label
	list  func(context.Context) ([]string, error) // of namespaces with an object

	mu       sync.Mutex
	followed bool
}

// namespaces returns them, and calls add with those that come later.
func (m *marked) namespaces(ctx context.Context, add func(string)) ([]string, error) {
	if err := m.follow(ctx, add); err != nil {
		return nil, err
	}
	found, err := m.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %T: %w", m.kind, err)
	}
	labelled := &corev1.NamespaceList{}
	if err := m.cache.List(ctx, labelled, client.UnsafeDisableDeepCopy, client.HasLabels{string(m.label)}); err != nil {
		return nil, fmt.Errorf("list namespaces with label %s: %w", m.label, err)
	}
	for i := range labelled.Items {
		found = append(found, labelled.Items[i].Name)
	}
	return found, nil
}

// follow adds the namespaces that the cache receives. It registers for them once.
func (m *marked) follow(ctx context.Context, add func(string)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.followed {
		return nil
	}
	tell := func(o any) {
		switch o := o.(type) {
		case *corev1.Namespace:
			if metav1.HasLabel(o.ObjectMeta, string(m.label)) {
				add(o.Name)
			}
		case client.Object:
			add(o.GetNamespace())
		}
	}
	for _, kind := range []client.Object{m.kind, &corev1.Namespace{}} {
		informer, err := m.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }})
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	m.followed = true
	return nil
}
