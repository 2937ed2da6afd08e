package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

const (
	// systemNamespace is where the overlays put the operators.
	systemNamespace = "flotilla-system"
	// mostNodes is how many nodes are looked at: pods in trouble on more of them have a cause in common.
	mostNodes = 20
)

// looker reads the world. It notes the kinds that it may not read.
type looker struct {
	client *workload.Client
	world  World
}

// look reads the facts about a workload that the rules use. The workload and its pods must be readable, the rest may be.
func look(ctx context.Context, client *workload.Client, named workload.Named, now time.Time) (World, error) {
	s, err := client.Get(ctx, named)
	if err != nil {
		return World{}, err
	}
	pods, err := client.Pods(ctx, s)
	if err != nil {
		return World{}, err
	}
	l := &looker{
		client: client,
		world: World{
			Set:   s,
			Pods:  pods,
			Now:   now,
			Nodes: map[string]*corev1.Node{},
		},
	}
	for _, part := range []struct {
		name string
		read func(context.Context) error
	}{
		{"events", l.warnings}, {"resource quotas", l.quotas}, {"disruption budgets", l.disruptionBudgets},
		{"unavailable budgets", l.unavailableBudgets}, {"nodes", l.nodes}, {"the operator", l.manager},
	} {
		if err := part.read(ctx); err != nil {
			l.world.Unread = append(l.world.Unread, fmt.Sprintf("%s: %s", part.name, err))
		}
	}
	return l.world, nil
}

func (l *looker) warnings(ctx context.Context) error {
	list, err := l.client.Core.CoreV1().Events(l.client.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil {
		return err
	}
	mine := map[string]bool{string(l.world.Set.UID): true}
	for _, pod := range l.world.Pods {
		mine[string(pod.UID)] = true
	}
	for _, event := range list.Items {
		if mine[string(event.InvolvedObject.UID)] {
			l.world.Warnings = append(l.world.Warnings, event)
		}
	}
	slices.SortFunc(l.world.Warnings, func(a, b corev1.Event) int { return told(&b).Compare(told(&a)) })
	return nil
}

// told returns when an event was reported last.
func told(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func (l *looker) quotas(ctx context.Context) error {
	list, err := l.client.Core.CoreV1().ResourceQuotas(l.client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	l.world.Quotas = list.Items
	return nil
}

func (l *looker) disruptionBudgets(ctx context.Context) error {
	list, err := l.client.Core.PolicyV1().PodDisruptionBudgets(l.client.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if b := &list.Items[i]; l.selected(b.Spec.Selector) {
			l.world.Budgets = append(l.world.Budgets, Budget{
				Kind:    "PodDisruptionBudget",
				Name:    b.Name,
				Allowed: int(b.Status.DisruptionsAllowed),
			})
		}
	}
	return nil
}

// unavailableBudget has the fields that are read of a PodUnavailableBudget.
type unavailableBudget struct {
	Spec struct {
		Selector  *metav1.LabelSelector `json:"selector"`
		TargetRef *struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
		} `json:"targetRef"`
	} `json:"spec"`
	Status struct {
		UnavailableAllowed int `json:"unavailableAllowed"`
	} `json:"status"`
}

func (l *looker) unavailableBudgets(ctx context.Context) error {
	for _, version := range workload.Versions() {
		resource := schema.GroupVersionResource{Group: "policy.kruise.io", Version: version, Resource: "podunavailablebudgets"}
		list, err := l.client.Dynamic.Resource(resource).Namespace(l.client.Namespace).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // the feature is not installed, or not in this version
		}
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := l.addBudget(&list.Items[i]); err != nil {
				return fmt.Errorf("read budget %s: %w", list.Items[i].GetName(), err)
			}
		}
		return nil
	}
	return nil
}

func (l *looker) addBudget(object *unstructured.Unstructured) error {
	var b unavailableBudget
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &b); err != nil {
		return err
	}
	target := b.Spec.TargetRef
	targeted := target != nil && target.Kind == l.world.Set.Kind.Name && target.Name == l.world.Set.Name
	if targeted {
		group, err := schema.ParseGroupVersion(target.APIVersion)
		targeted = err == nil && group.Group == workload.Group
	}
	if targeted || l.selected(b.Spec.Selector) {
		l.world.Budgets = append(l.world.Budgets, Budget{
			Kind:    "PodUnavailableBudget",
			Name:    object.GetName(),
			Allowed: b.Status.UnavailableAllowed,
		})
	}
	return nil
}

// selected reports whether a selector matches pods of the workload's template.
func (l *looker) selected(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return false
	}
	matches, err := metav1.LabelSelectorAsSelector(selector)
	of, _, _ := unstructured.NestedStringMap(l.world.Set.Template(), "metadata", "labels")
	return err == nil && !matches.Empty() && matches.Matches(labels.Set(of))
}

// nodes reads the nodes of pods that are not ready.
func (l *looker) nodes(ctx context.Context) error {
	for _, pod := range l.world.Pods {
		name := pod.Spec.NodeName
		if name == "" || workload.IsReady(pod) || l.world.Nodes[name] != nil || len(l.world.Nodes) == mostNodes {
			continue
		}
		node, err := l.client.Core.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return err
		}
		l.world.Nodes[name] = node
	}
	return nil
}

// manager reads the operator's Deployment where it matters, and where the overlays put it.
func (l *looker) manager(ctx context.Context) error {
	s := l.world.Set
	if s.Observed >= s.Generation {
		return nil
	}
	name := s.Kind.Feature + "-manager"
	d, err := l.client.Core.AppsV1().Deployments(systemNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.world.Manager = &Manager{Namespace: systemNamespace, Name: name, Absent: true}
		return nil
	}
	if err != nil {
		return err
	}
	l.world.Manager = &Manager{
		Namespace: d.Namespace,
		Name:      d.Name,
		Ready:     int(d.Status.ReadyReplicas),
	}
	return nil
}
