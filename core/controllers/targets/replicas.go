package targets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNoScale means that a kind has no scale subresource, so that the wanted replicas of its objects are unknown.
var ErrNoScale = errors.New("the kind has no scale subresource")

// Replicas is the content of the scale subresource of a workload.
type Replicas struct {
	// Spec is how many pods the workload wants.
	Spec int32
	// Status is how many pods it had at most a minute ago.
	Status int32
	// Selector matches its pods, in the form of a query such as app=web. Empty if the workload does not publish it.
	Selector string
}

// remembered is a cached answer about one generation of a workload, which was given when the cache had that version.
type remembered struct {
	generation   int64
	version      string
	replicas     Replicas
	err          error
	asked, until time.Time
}

// Replicas returns the replicas of a workload that Get or Owners returned. For a Job, which has no scale subresource,
// it is spec.parallelism. Spec and Selector follow each edit that the cache has seen; if Options.Republishes returns
// true, all of it follows each version that the cache has seen.
func (r *Reader) Replicas(ctx context.Context, workload *metav1.PartialObjectMetadata) (Replicas, error) {
	known := r.remembered(workload)
	if known != nil && r.options.Clock.Now().Before(known.until) && !r.isRepublished(known, workload) {
		return known.replicas, known.err
	}
	key := string(workload.UID) + "/" + strconv.FormatInt(workload.Generation, 10) + "/" + workload.ResourceVersion
	return ask(ctx, r.patience, &r.asking, key, func(ctx context.Context) (Replicas, error) {
		now := remembered{
			generation: workload.Generation,
			version:    workload.ResourceVersion,
			asked:      r.options.Clock.Now(),
		}
		now.replicas, now.err = r.askReplicas(ctx, workload)
		now.err = r.patience.failed(ctx, string(workload.UID), now.err)
		now.until = r.options.Clock.Now().Add(r.patience.life(now.err, replicasTTL))
		if now.err != nil && known != nil && known.err == nil {
			now.replicas, now.err = known.replicas, nil // the spec has not changed since
		}
		r.replicas.Add(workload.UID, now)
		return now.replicas, now.err
	})
}

// remembered returns the cached answer for this generation of the workload, or nil.
func (r *Reader) remembered(workload *metav1.PartialObjectMetadata) *remembered {
	known, ok := r.replicas.Get(workload.UID)
	if !ok {
		return nil
	}
	if known := known.(remembered); known.generation == workload.Generation {
		return &known
	}
	return nil
}

// isRepublished reports whether the workload may have other values than the remembered ones, and can be asked again.
func (r *Reader) isRepublished(known *remembered, workload *metav1.PartialObjectMetadata) bool {
	republishes := r.options.Republishes
	return republishes != nil && known.version != workload.ResourceVersion && republishes(workload.GroupVersionKind().GroupKind()) &&
		r.options.Clock.Now().Sub(known.asked) >= r.options.RepublishPause
}

func (r *Reader) askReplicas(ctx context.Context, workload *metav1.PartialObjectMetadata) (Replicas, error) {
	kind := workload.GroupVersionKind().GroupKind()
	if kind == batchv1.SchemeGroupVersion.WithKind("Job").GroupKind() {
		return r.askJob(ctx, workload)
	}
	fail := func(err error) (Replicas, error) {
		return Replicas{}, fmt.Errorf("get the scale of %s %s/%s: %w", kind, workload.Namespace, workload.Name, err)
	}
	mapping, err := r.kinds.get(ctx, kind)
	if apierrors.IsForbidden(err) && r.options.ByScale {
		mapping, err = r.options.Mapper.RESTMapping(kind)
	}
	if err != nil {
		return fail(err)
	}
	if !r.hasScale(kind, mapping) {
		return fail(ErrNoScale)
	}
	scale, err := r.askScale(ctx, mapping, types.NamespacedName{Namespace: workload.Namespace, Name: workload.Name})
	if err != nil {
		return fail(err)
	}
	return replicasOf(scale), nil
}

// hasScale reports whether a kind has a scale subresource, as discovery reported a while ago at most. The subresource
// itself would not show it: without one the answer is that the operator may not get it. If discovery fails it returns
// true.
func (r *Reader) hasScale(kind schema.GroupKind, mapping *meta.RESTMapping) bool {
	if has, known := r.scaled.Get(kind); known {
		return has.(bool)
	}
	resources, err := r.served.ServerResourcesForGroupVersion(mapping.GroupVersionKind.GroupVersion().String())
	if err != nil {
		return true
	}
	has := slices.ContainsFunc(resources.APIResources, func(a metav1.APIResource) bool {
		return a.Name == mapping.Resource.Resource+"/scale"
	})
	r.scaled.Add(kind, has, replicasTTL)
	return has
}

func (r *Reader) askJob(ctx context.Context, workload *metav1.PartialObjectMetadata) (Replicas, error) {
	job := &batchv1.Job{}
	if err := r.options.Live.Get(ctx, client.ObjectKeyFromObject(workload), job); err != nil {
		return Replicas{}, fmt.Errorf("get the parallelism of Job %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	return Replicas{
		Spec:     ptr.Deref(job.Spec.Parallelism, 1),
		Status:   job.Status.Active,
		Selector: metav1.FormatLabelSelector(job.Spec.Selector),
	}, nil
}
