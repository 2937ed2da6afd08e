package setup

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/scope"
)

// limit has pods cached of those namespaces alone that budgets may cover pods of.
func (s *settings) limit(env *manager.Environment) error {
	live, err := env.APIReader("scope")
	if err != nil {
		return fmt.Errorf("make a reader of pods: %w", err)
	}
	g := &guarded{cache: env.Manager.GetCache()}
	s.scope.From(scope.Source{Namespaces: g.namespaces, List: func(ctx context.Context, namespace, version string) (*corev1.PodList, error) {
		pods := &corev1.PodList{}
		at := &metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		return pods, live.List(ctx, pods, client.InNamespace(namespace), &client.ListOptions{Raw: at})
	}})
	return nil
}

// guarded are the namespaces that have a budget, and those with the label that says so: pods may have marks there that are
// to be taken away.
type guarded struct {
	cache cache.Cache

	mu       sync.Mutex
	followed bool
}

// namespaces returns them, and calls add with those that come later.
func (g *guarded) namespaces(ctx context.Context, add func(string)) ([]string, error) {
	if err := g.follow(ctx, add); err != nil {
		return nil, err
	}
	var found []string
	budgets, all := &v1beta1.PodUnavailableBudgetList{}, &corev1.NamespaceList{}
	if err := g.cache.List(ctx, budgets, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	for i := range budgets.Items {
		found = append(found, budgets.Items[i].Namespace)
	}
	if err := g.cache.List(ctx, all, client.UnsafeDisableDeepCopy, client.HasLabels{v1beta1.NamespaceLabel}); err != nil {
		return nil, fmt.Errorf("list namespaces with budgets: %w", err)
	}
	for i := range all.Items {
		found = append(found, all.Items[i].Name)
	}
	return found, nil
}

// follow adds what comes to the cache, once.
func (g *guarded) follow(ctx context.Context, add func(string)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.followed {
		return nil
	}
	tell := func(o any) {
		switch o := o.(type) {
		case *v1beta1.PodUnavailableBudget:
			add(o.Namespace)
		case *corev1.Namespace:
			if _, labelled := o.Labels[v1beta1.NamespaceLabel]; labelled {
				add(o.Name)
			}
		}
	}
	for _, kind := range []client.Object{&v1beta1.PodUnavailableBudget{}, &corev1.Namespace{}} {
		informer, err := g.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }})
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	g.followed = true
	return nil
}
