package workloads

import (
	"context"
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// longestChain is the largest number of owners above each other that are followed: owner references can form a cycle.
const longestChain = 10

// Reader reads workloads of any kind in a world, with the errors of targets.Reader.
type Reader struct{ world *cluster.World }

// NewReader returns a reader of the world as it is.
func NewReader(w *cluster.World) Reader { return Reader{world: w} }

// Get returns the metadata of an object by name.
func (r Reader) Get(_ context.Context, kind schema.GroupKind, name types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	o, err := r.find(kind, name, "")
	if err != nil {
		return nil, err
	}
	return metadataOf(kind, o), nil
}

// List returns the metadata of all objects of a kind in a namespace.
func (r Reader) List(_ context.Context, kind schema.GroupKind, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	if !r.Serves(kind) {
		return nil, fmt.Errorf("list %s: %w", kind, &meta.NoKindMatchError{GroupKind: kind})
	}
	var all []*metav1.PartialObjectMetadata
	for _, o := range r.world.View(nil).Objects(kind.Kind) {
		if o.GetNamespace() == namespace && isOf(kind, o) {
			all = append(all, metadataOf(kind, o))
		}
	}
	return all, nil
}

// Owners returns the controller of an object, the controller of that one, and so on. With an error come the owners found so
// far.
func (r Reader) Owners(_ context.Context, namespace string, object metav1.Object, wanted ...schema.GroupKind) ([]*metav1.PartialObjectMetadata, error) {
	var chain []*metav1.PartialObjectMetadata
	for range longestChain {
		ref := metav1.GetControllerOfNoCopy(object)
		if ref == nil {
			return chain, nil
		}
		kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		if kind == corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() {
			return chain, nil // as on a server, where the metadata of all pods would be cached for that
		}
		o, err := r.find(kind, types.NamespacedName{Namespace: namespace, Name: ref.Name}, ref.UID)
		if err != nil {
			return chain, err
		}
		owner := metadataOf(kind, o)
		chain = append(chain, owner)
		if slices.Contains(wanted, kind) {
			return chain, nil
		}
		object = owner
	}
	return chain, fmt.Errorf("follow the owners of %s/%s: there are more than %d", namespace, chain[0].Name, longestChain)
}

// find returns the object with the name, and with the UID unless that is empty.
func (r Reader) find(kind schema.GroupKind, name types.NamespacedName, uid types.UID) (action.Object, error) {
	if !r.Serves(kind) {
		return nil, fmt.Errorf("get %s %s: %w", kind, name, &meta.NoKindMatchError{GroupKind: kind})
	}
	o := r.world.View(nil).Stored(kind.Kind, name)
	if o == nil || !isOf(kind, o) || uid != "" && o.GetUID() != uid {
		return nil, fmt.Errorf("get %s %s: %w", kind, name, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, name.Name))
	}
	return o, nil
}

// Serves reports whether the world has or had objects of the kind.
func (r Reader) Serves(kind schema.GroupKind) bool {
	return slices.ContainsFunc(r.world.Events(kind.Kind), func(e cluster.Event) bool { return isOf(kind, e.Object) })
}

// isOf reports whether an object, which has the name of the kind, is of its group, too. One that does not show its group is.
func isOf(kind schema.GroupKind, o action.Object) bool {
	if gvk := o.GetObjectKind().GroupVersionKind(); gvk.Version != "" {
		return gvk.Group == kind.Group
	}
	known, _, err := scheme.Scheme.ObjectKinds(o)
	return err != nil || known[0].Group == kind.Group
}

func metadataOf(kind schema.GroupKind, o action.Object) *metav1.PartialObjectMetadata {
	m := meta.AsPartialObjectMetadata(o)
	m.SetGroupVersionKind(kind.WithVersion(o.GetObjectKind().GroupVersionKind().Version))
	return m
}

// Replicas returns what the scale subresource of a workload has. A kind that the world does not know from Kubernetes has one
// if its object has spec.replicas.
func (r Reader) Replicas(_ context.Context, workload *metav1.PartialObjectMetadata) (targets.Replicas, error) {
	kind := workload.GroupVersionKind().GroupKind()
	fields, err := r.fields(workload)
	if err != nil {
		return targets.Replicas{}, err
	}
	if kind == batchv1.SchemeGroupVersion.WithKind("Job").GroupKind() {
		return targets.Replicas{Spec: numberIn(fields, 1, "spec", "parallelism"), Selector: selectorIn(fields)}, nil
	}
	if scaled(kind) {
		return targets.Replicas{Spec: numberIn(fields, 1, "spec", "replicas"), Selector: selectorIn(fields)}, nil
	}
	n := numberIn(fields, -1, "spec", "replicas")
	if n < 0 {
		return targets.Replicas{}, fmt.Errorf("get the scale of %s %s/%s: %w", kind, workload.Namespace, workload.Name, targets.ErrNoScale)
	}
	selector, _, _ := unstructured.NestedString(fields, "status", "labelSelector")
	return targets.Replicas{Spec: n, Selector: selector}, nil
}

// Unscaled returns how many pods a workload without a scale subresource wants.
func (r Reader) Unscaled(_ context.Context, workload *metav1.PartialObjectMetadata) (int32, error) {
	fields, err := r.fields(workload)
	if err != nil {
		return 0, err
	}
	for _, path := range [][]string{{"status", "desiredNumberScheduled"}, {"spec", "replicas"}, {"spec", "parallelism"}} {
		if n := numberIn(fields, -1, path...); n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("read the number of pods of %s %s/%s: %w", workload.Kind, workload.Namespace, workload.Name, targets.ErrNoScale)
}

// scaled reports whether the kind is one of Kubernetes with a scale subresource.
func scaled(kind schema.GroupKind) bool {
	return kind == corev1.SchemeGroupVersion.WithKind("ReplicationController").GroupKind() ||
		kind.Group == appsv1.GroupName && slices.Contains([]string{"Deployment", "ReplicaSet", "StatefulSet"}, kind.Kind)
}

// fields returns the object as a server sends it.
func (r Reader) fields(workload *metav1.PartialObjectMetadata) (map[string]any, error) {
	o, err := r.find(workload.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: workload.Namespace, Name: workload.Name}, workload.UID)
	if err != nil {
		return nil, err
	}
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", workload.Kind, workload.Name, err)
	}
	return fields, nil
}

// numberIn returns a number of pods, or another value if there is none.
func numberIn(fields map[string]any, otherwise int32, path ...string) int32 {
	n, found, err := unstructured.NestedInt64(fields, path...)
	if !found || err != nil || n < 0 {
		return otherwise
	}
	return int32(min(n, math.MaxInt32)) //nolint:gosec // it is bounded
}

// selectorIn returns spec.selector as a query. That of a ReplicationController is a map.
func selectorIn(fields map[string]any) string {
	if labels, found, err := unstructured.NestedStringMap(fields, "spec", "selector"); found && err == nil {
		return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
	}
	in, _, _ := unstructured.NestedMap(fields, "spec", "selector")
	selector := &metav1.LabelSelector{}
	if in == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(in, selector) != nil {
		return ""
	}
	return metav1.FormatLabelSelector(selector)
}
