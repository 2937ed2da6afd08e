package setup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/marks"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread"
	spreadadmission "github.com/flotilla-project/flotilla/spread/internal/workloadspread/admission"
)

// markWait is how long a client waits for its turn to have a namespace marked.
const markWait = 2 * time.Second

// webhooks returns the same endpoints whatever the feature gates are: webhook configurations name them, and the API
// server would refuse the request if an endpoint were absent.
func (s *settings) webhooks(ctx context.Context, env *manager.Environment) (manager.Webhooks, error) {
	reader, err := s.workloads(ctx, env)
	if err != nil {
		return manager.Webhooks{}, err
	}
	live, err := env.APIReader("admission")
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a reader for admission: %w", err)
	}
	writer, err := env.Client("admission")
	if err != nil {
		return manager.Webhooks{}, fmt.Errorf("make a client for admission: %w", err)
	}
	if err := s.limit(env); err != nil {
		return manager.Webhooks{}, err
	}
	keeper, err := s.sharedKeeper(env)
	if err != nil {
		return manager.Webhooks{}, err
	}
	cached := fastclient.NewReader(env.Manager.GetCache(), env.Manager.GetScheme(), fastclient.Options{})
	const label marks.Label = v1beta1.NamespaceLabel
	namespaces := cachedBy[corev1.Namespace](cached)
	list := &spreadadmission.List{Live: live, Clock: env.Clock,
		Cached: func(ctx context.Context, namespace string) ([]*v1beta1.WorkloadSpread, error) {
			return fastclient.All[v1beta1.WorkloadSpread](ctx, cached, namespace)
		},
		Admitted: func(ctx context.Context, namespace string) (at time.Time) {
			if ns, err := namespaces(ctx, types.NamespacedName{Name: namespace}); err == nil {
				at = label.Admitted(ns)
			}
			return at
		},
	}
	pods := &spreadadmission.Pods{
		Spreads: list, Workloads: reader, Versioned: s.versioned.kinds, Clock: env.Clock, Cached: cachedBy[corev1.Pod](cached),
		Unplaced: workloadspread.Unplaced,
		All: func(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
			if !s.scope.Complete(namespace) { // it has just got its first WorkloadSpread
				return listed(ctx, live, namespace)
			}
			return fastclient.All[corev1.Pod](ctx, cached, namespace)
		},
		Places: keeper,
	}
	marker := &marks.Marker{Label: label, Writer: writer, Cached: namespaces, Clock: env.Clock}
	kind := (&spreadadmission.Spreads{
		Spreads: list, Kinds: reader.Config(), Serves: reader.Serves, Mark: limited(marker.Mark), Pause: int32(s.pause / time.Second),
		IsExempt: func(ctx context.Context, namespace string) bool {
			ns, err := namespaces(ctx, types.NamespacedName{Name: namespace})
			return namespace == metav1.NamespaceSystem || namespace == env.Options.Certificates.Namespace ||
				err == nil && metav1.HasLabel(ns.ObjectMeta, spreadadmission.ControlPlaneLabel)
		},
		Templates: reader, Cluster: podtemplate.NewLimited(writer, env.Clock, coreadmission.QueryLimiter()),
	}).Webhook()
	on := env.Options.FeatureGates.Enabled(featuregates.WorkloadSpread)
	return manager.Webhooks{
		Mutating:   []coreadmission.Endpoint{answer(on, pods.Mutating(), admission.Allowed)},
		Validating: []coreadmission.Endpoint{answer(on, pods.Validating(), admission.Allowed), answer(on, kind.Validating(), admission.Denied)},
		Converting: kind.Converting(),
	}, nil
}

// listed returns the pods of a namespace as the server has them.
func listed(ctx context.Context, live client.Reader, namespace string) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// limited bounds how often namespaces are marked on behalf of clients, which need not be the API server.
func limited(mark func(context.Context, string) error) func(context.Context, string) error {
	limit := coreadmission.QueryLimiter()
	return func(ctx context.Context, namespace string) error {
		waiting, cancel := context.WithTimeout(ctx, markWait)
		defer cancel()
		if err := limit.Wait(waiting); err != nil {
			return fmt.Errorf("wait to label namespace %s: %w", namespace, err)
		}
		return mark(ctx, namespace)
	}
}

// cachedBy returns a function that gets objects from the cache.
func cachedBy[T any, P fastclient.Object[T]](r *fastclient.Reader) func(context.Context, types.NamespacedName) (*T, error) {
	return func(ctx context.Context, key types.NamespacedName) (*T, error) {
		return fastclient.Get[T, P](ctx, r, key)
	}
}

// answer gives all requests the same answer while the feature gate is off.
func answer(on bool, e coreadmission.Endpoint, off func(string) admission.Response) coreadmission.Endpoint {
	if on {
		return e
	}
	return e.Answering(off, "feature-gate "+string(featuregates.WorkloadSpread)+" is not enabled")
}
