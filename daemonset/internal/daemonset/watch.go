package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// nodeEvents wakes the sets that an event of one node concerns. It looks at that node alone, once for each set.
func nodeEvents(reader *fastclient.Reader, eligible *eligibility.Memory) nodes.Events {
	return func(ctx context.Context, old, now *corev1.Node, q nodes.Queue) {
		sets, err := fastclient.All[v1beta1.DaemonSet](ctx, reader, "")
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to list the DaemonSets that a change of a node concerns")
			return
		}
		for _, set := range sets {
			if concerned(set, eligible.Template(set, &set.Spec.Template), old, now) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
			}
		}
	}
}

// concerned reports whether a change of a node can change the plan or the status of a set: old is nil for a node that is
// new, and now for one that is gone.
func concerned(set *v1beta1.DaemonSet, t *eligibility.Template, old, now *corev1.Node) bool {
	switch {
	case old == nil:
		return t.Of(now).ShouldContinue
	case now == nil:
		return t.Of(old).ShouldContinue
	}
	before, after := t.Of(old), t.Of(now)
	switch {
	case before != after:
		return true
	case !after.ShouldContinue:
		return false
	case old.UID != now.UID, nodes.ReadinessChanged(old, now):
		return true
	}
	return selected(set, old) != selected(set, now)
}

// selected reports whether the selector of the rolling update matches the node. One that cannot be read matches none.
func selected(set *v1beta1.DaemonSet, node *corev1.Node) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(rolling.Selector)
	return err == nil && selector.Matches(labels.Set(node.Labels))
}
