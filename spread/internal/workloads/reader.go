package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/targets"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// rememberedSpecs is how many objects are remembered.
const rememberedSpecs = 2000

// Targets reads the metadata of workloads, and how many pods they want. It is a targets.Reader.
type Targets interface {
	Get(ctx context.Context, kind schema.GroupKind, name types.NamespacedName) (*metav1.PartialObjectMetadata, error)
	List(ctx context.Context, kind schema.GroupKind, namespace string) ([]*metav1.PartialObjectMetadata, error)
	Owners(ctx context.Context, namespace string, object metav1.Object, wanted ...schema.GroupKind) ([]*metav1.PartialObjectMetadata, error)
	Replicas(ctx context.Context, workload *metav1.PartialObjectMetadata) (targets.Replicas, error)
}

// Reader reads workloads. It is safe for concurrent use.
type Reader struct {
	config  *Config
	targets Targets
	live    client.Reader
	mapper  meta.RESTMapper
	specs   *lru.Cache // types.UID to spec
	updates *lru.Cache // types.UID to update
}

// spec is an object as it was at a generation.
type spec struct {
	generation int64
	object     map[string]any
}

// NewReader returns a Reader, which works until ctx ends. Options.Follow is set to the kinds that can be spread and the
// kinds between them and their pods.
func NewReader(ctx context.Context, config *Config, o targets.Options) (*Reader, error) {
	o.Follow = func(kind schema.GroupKind) bool { return config.Follows(ctx, kind) }
	made, err := targets.New(o)
	if err != nil {
		return nil, err
	}
	r := ReaderOf(config, made, o.Live)
	r.mapper = o.Mapper
	return r, nil
}

// ReaderOf returns a Reader that asks t and reads whole objects by live. It does not know which kinds the cluster serves.
func ReaderOf(config *Config, t Targets, live client.Reader) *Reader {
	return &Reader{
		config:  config,
		targets: t,
		live:    live,
		specs:   lru.New(rememberedSpecs),
		updates: lru.New(rememberedSpecs),
	}
}

// Config returns the kinds that the ConfigMap allows.
func (r *Reader) Config() *Config { return r.config }

// KindOf returns the kind of the target of a spread.
func KindOf(ref *v1beta1.TargetReference) schema.GroupKind {
	if ref == nil {
		return schema.GroupKind{}
	}
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// Serves reports whether the cluster serves a kind; true if that cannot be found out now.
func (r *Reader) Serves(kind schema.GroupKind) bool {
	_, err := r.mapper.RESTMapping(kind)
	return !meta.IsNoMatchError(err)
}

// Get returns the metadata of the target of a spread. It is nil if there is no such object, or the cluster does not
// serve its kind.
func (r *Reader) Get(ctx context.Context, spread *v1beta1.WorkloadSpread) (*metav1.PartialObjectMetadata, error) {
	ref := spread.Spec.TargetReference
	if ref == nil {
		return nil, nil
	}
	object, err := r.targets.Get(ctx, KindOf(ref), types.NamespacedName{Namespace: spread.Namespace, Name: ref.Name})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	return object, err
}

// Known returns an error unless caches show the target of a spread, and the objects between it and its pods. An object that
// cannot be read without other permissions or kinds counts as known.
func (r *Reader) Known(ctx context.Context, spread *v1beta1.WorkloadSpread) error {
	if _, err := r.Get(ctx, spread); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	kinds, err := r.Between(ctx, KindOf(spread.Spec.TargetReference))
	for _, kind := range kinds {
		_, err := r.targets.List(ctx, kind, spread.Namespace)
		if err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
			return err
		}
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// Owners returns the controllers of a pod up to the topmost that can be spread. An owner that is gone, or that is being
// deleted, ends the list: it has no pods for Children, either.
func (r *Reader) Owners(ctx context.Context, namespace string, pod metav1.Object) ([]*metav1.PartialObjectMetadata, error) {
	chain, err := r.targets.Owners(ctx, namespace, pod)
	if i := slices.IndexFunc(chain, isBeingDeleted); i >= 0 {
		return chain[:i], nil
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return chain, nil
	}
	return chain, err
}

func isBeingDeleted(o *metav1.PartialObjectMetadata) bool { return o.DeletionTimestamp != nil }

// Replicas returns how many pods the workload wants of those that the spread selects; nil if that is unknown.
func (r *Reader) Replicas(ctx context.Context, spread *v1beta1.WorkloadSpread, workload *metav1.PartialObjectMetadata) (*int32, error) {
	if workload == nil || workload.DeletionTimestamp != nil {
		return new(int32(0)), nil
	}
	var paths []string
	if f := spread.Spec.TargetFilter; f != nil {
		paths = f.ReplicasPathList
	}
	if len(paths) == 0 {
		allowed, ok, err := r.config.find(ctx, workload.GroupVersionKind().GroupKind())
		if err != nil {
			return nil, err
		}
		if ok && allowed.ReplicasPath != "" {
			paths = []string{allowed.ReplicasPath}
		}
	}
	if len(paths) > 0 {
		object, err := r.spec(ctx, workload)
		if err != nil {
			return nil, err
		}
		n, err := Sum(object, paths...)
		if err != nil {
			return nil, fmt.Errorf("get the replicas of %s %s: %w", workload.Kind, workload.Name, err)
		}
		return &n, nil
	}
	scale, err := r.targets.Replicas(ctx, workload)
	if errors.Is(err, targets.ErrNoScale) {
		return nil, nil
	}
	return &scale.Spec, err
}

// IsHopeless reports whether an error of reading a workload stays in spite of retries: the operator may not read it, or its
// replicas are not at the path that the user has set.
func IsHopeless(err error) bool { return errors.Is(err, errNumber) || apierrors.IsForbidden(err) }

// Selector returns the selector of a workload's pods from its scale, if it is of a kind that the ConfigMap allows: such
// pods need not have owner references. It is nil for other workloads, and if there is no scale to read. published is false
// until the workload's own controller has set it.
func (r *Reader) Selector(ctx context.Context, workload *metav1.PartialObjectMetadata) (selector labels.Selector, published bool, err error) {
	if slices.Contains(BuiltIn(), workload.GroupVersionKind().GroupKind()) {
		return nil, true, nil
	}
	return selectorOf(r.targets.Replicas(ctx, workload))
}

func selectorOf(scale targets.Replicas, err error) (selector labels.Selector, published bool, _ error) {
	switch {
	case errors.Is(err, targets.ErrNoScale), apierrors.IsForbidden(err):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case scale.Selector == "":
		return nil, false, nil
	}
	if parsed, wrong := labels.Parse(scale.Selector); wrong == nil && !parsed.Empty() {
		return parsed, true, nil
	}
	return nil, true, nil // a workload with an invalid selector has its pods by owner references
}

// Ordinals returns how a StatefulSet numbers its pods.
func (r *Reader) Ordinals(ctx context.Context, workload *metav1.PartialObjectMetadata) (subsets.Ordinals, error) {
	object, err := r.spec(ctx, workload)
	if err != nil {
		return subsets.Ordinals{}, err
	}
	return ordinalsOf(object), nil
}

func ordinalsOf(object map[string]any) subsets.Ordinals {
	start, _, _ := unstructured.NestedInt64(object, "spec", "ordinals", "start")
	list, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "reserveOrdinals")
	o := subsets.Ordinals{Start: int(start)}
	reserved, _ := list.([]any)
	for _, entry := range reserved {
		first, last, _ := strings.Cut(fmt.Sprint(entry), "-")
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(cmp.Or(last, first))
		if err == nil && err2 == nil {
			o.Reserved = append(o.Reserved, subsets.Range{First: from, Last: to})
		}
	}
	return o
}

// spec reads the object from the server, once for each generation that the cache has seen.
func (r *Reader) spec(ctx context.Context, workload *metav1.PartialObjectMetadata) (map[string]any, error) {
	if known, ok := r.specs.Get(workload.UID); ok && known.(spec).generation == workload.Generation && workload.Generation > 0 {
		return known.(spec).object, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(workload.GroupVersionKind())
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(workload), object); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", workload.Kind, workload.Name, err)
	}
	r.specs.Add(workload.UID, spec{object.GetGeneration(), object.Object})
	return object.Object, nil
}

// Children returns the objects between a workload and its pods, such as the ReplicaSets of a Deployment. They belong to
// the cache and must not be changed. One that is being deleted is none, as a workload that is being deleted has no pods:
// its pods end with it, and it creates no others.
func (r *Reader) Children(ctx context.Context, workload *metav1.PartialObjectMetadata) ([]*metav1.PartialObjectMetadata, error) {
	kinds, err := r.Between(ctx, workload.GroupVersionKind().GroupKind())
	if err != nil || len(kinds) == 0 {
		return nil, err
	}
	var candidates []*metav1.PartialObjectMetadata
	for _, kind := range kinds {
		found, err := r.targets.List(ctx, kind, workload.Namespace)
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
		candidates = append(candidates, found...)
	}
	return below(workload, candidates), nil
}

// below returns the candidates that the workload controls, directly or not, and that stay, parents first.
func below(workload *metav1.PartialObjectMetadata, candidates []*metav1.PartialObjectMetadata) (children []*metav1.PartialObjectMetadata) {
	parents := map[types.UID]bool{workload.UID: true}
	for more := true; more; {
		more = false
		for _, o := range candidates {
			ref := metav1.GetControllerOfNoCopy(o)
			if ref != nil && parents[ref.UID] && !parents[o.UID] && !isBeingDeleted(o) {
				parents[o.UID], more = true, true
				children = append(children, o)
			}
		}
	}
	return children
}

// Between returns the kinds between a workload of a kind and its pods.
func (r *Reader) Between(ctx context.Context, kind schema.GroupKind) ([]schema.GroupKind, error) {
	if kind == Deployment {
		return []schema.GroupKind{ReplicaSet}, nil
	}
	allowed, _, err := r.config.find(ctx, kind)
	var kinds []schema.GroupKind
	for _, s := range allowed.SubResources {
		kinds = append(kinds, schema.GroupKind{Group: s.Group, Kind: s.Kind})
	}
	return kinds, err
}
