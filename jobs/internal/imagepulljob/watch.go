package imagepulljob

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/pods/imageref"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

const (
	// jobIndex finds NodeImages by the UIDs of the owners of their tags.
	jobIndex = "spec.images.tags.ownerReferences.uid"
	// imageIndex finds the jobs that have not completed by their image, with its tag and without.
	imageIndex = "spec.image"
	// copyIndex finds copies of secrets by their source and by the jobs that use them.
	copyIndex = "copy"
	// batch is how long events of NodeImages are gathered: a pass over a job costs as much as it has nodes, an event
	// only wakes it.
	batch = 100 * time.Millisecond
)

// everyImage is the key in imageIndex of all jobs that have not completed.
const everyImage = "*"

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		kind client.Object
		name string
		keys client.IndexerFunc
	}{
		{&nodeimage.NodeImage{}, jobIndex, owners},
		{&v1beta1.ImagePullJob{}, imageIndex, images},
	} {
		if err := indexer.IndexField(ctx, index.kind, index.name, index.keys); err != nil {
			return fmt.Errorf("index %T by %s: %w", index.kind, index.name, err)
		}
	}
	return nil
}

func indexCopies(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &corev1.Secret{}, copyIndex, copyKeys); err != nil {
		return fmt.Errorf("index the copies of secrets: %w", err)
	}
	return nil
}

func owners(o client.Object) []string {
	image, ok := o.(*nodeimage.NodeImage)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for name := range image.Spec.Images {
		for i := range image.Spec.Images[name].Tags {
			for _, owner := range image.Spec.Images[name].Tags[i].OwnerReferences {
				seen[string(owner.UID)] = true
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

func images(o client.Object) []string {
	job, ok := o.(*v1beta1.ImagePullJob)
	if !ok || isEnded(job) {
		return nil
	}
	ref, err := imageref.Parse(job.Spec.Image)
	if err != nil {
		return nil
	}
	return []string{everyImage, ref.Name, ref.String()}
}

func copyKeys(o client.Object) []string {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return nil
	}
	var keys []string
	if source := secret.Annotations[v1beta1.SecretSourceAnnotation]; source != "" {
		keys = append(keys, "of "+source)
	}
	for _, job := range plan.References(secret) {
		keys = append(keys, userKey(job))
	}
	return keys
}

func sourceKey(secret types.NamespacedName) string { return "of " + secret.String() }

func userKey(job string) string { return "for " + job }

// nodeImages wakes jobs for events of NodeImages: the jobs of an image for changes of that image, and the jobs that
// select the node when it comes, goes or gets other labels.
func (r *reconciler) nodeImages() handler.EventHandler {
	wake := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], image string, concerns func(*v1beta1.ImagePullJob) bool) {
		jobs, err := fastclient.ByIndex[v1beta1.ImagePullJob](ctx, r.Reader, "", imageIndex, image)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to list the ImagePullJobs of an image", "image", image)
		}
		for _, job := range jobs {
			if concerns(job) {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}, batch)
			}
		}
	}
	all := func(*v1beta1.ImagePullJob) bool { return true }
	comesOrGoes := func(ctx context.Context, o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		wake(ctx, q, everyImage, func(job *v1beta1.ImagePullJob) bool { return selects(job, o.GetName(), o.GetLabels()) })
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			comesOrGoes(ctx, e.Object, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			comesOrGoes(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, okBefore := e.ObjectOld.(*nodeimage.NodeImage)
			after, okAfter := e.ObjectNew.(*nodeimage.NodeImage)
			if !okBefore || !okAfter {
				return
			}
			if (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) {
				comesOrGoes(ctx, after, q)
				return
			}
			if !maps.Equal(before.Labels, after.Labels) {
				wake(ctx, q, everyImage, func(job *v1beta1.ImagePullJob) bool {
					return selects(job, after.Name, before.Labels) != selects(job, after.Name, after.Labels)
				})
			}
			for _, key := range changes(before, after) {
				wake(ctx, q, key, all)
			}
		},
	}
}

// selects reports whether the job may have the node as a target.
func selects(job *v1beta1.ImagePullJob, node string, labels map[string]string) bool {
	if usesPods(job) {
		return true
	}
	if s := job.Spec.Selector; s != nil && s.Names != nil {
		return slices.Contains(s.Names, node)
	}
	matches, err := matcher(job)
	return err == nil && matches(labels)
}

// changes returns the keys in imageIndex of the differences: of an image with a changed request to the node, and of
// each tag for which the node reports another state.
func changes(before, after *nodeimage.NodeImage) []string {
	keys := map[string]bool{}
	for _, o := range []*nodeimage.NodeImage{before, after} {
		for name := range o.Spec.Images {
			if !equality.Semantic.DeepEqual(before.Spec.Images[name], after.Spec.Images[name]) {
				keys[name] = true
			}
		}
		for name := range o.Status.ImageStatuses {
			was, is := told(before, name), told(after, name)
			for tag := range told(o, name) {
				if !keys[name] && !equality.Semantic.DeepEqual(was[tag], is[tag]) {
					keys[imageref.Ref{Name: name, Tag: tag}.String()] = true
				}
			}
		}
	}
	return slices.Collect(maps.Keys(keys))
}

// told returns the states that a node reports for the tags of an image.
func told(o *nodeimage.NodeImage, image string) map[string]*nodeimage.ImageTagStatus {
	tags := o.Status.ImageStatuses[image].Tags
	states := make(map[string]*nodeimage.ImageTagStatus, len(tags))
	for i := range tags {
		states[tags[i].Tag] = &tags[i]
	}
	return states
}

// copies wakes the jobs that use a copy of a secret.
func copies() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		secret, ok := o.(*corev1.Secret)
		if !ok {
			return nil
		}
		var requests []reconcile.Request
		for _, job := range plan.References(secret) {
			requests = append(requests, reconcile.Request{NamespacedName: plan.JobOf(job)})
		}
		return requests
	})
}

// deletedJobs wakes the copies that a deleted job still refers to.
func (r *copyReconciler) deletedJobs() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			job := client.ObjectKeyFromObject(e.Object)
			found, err := fastclient.ByIndex[corev1.Secret](ctx, r.Reader, "", copyIndex, userKey(job.String()))
			if err != nil {
				log.FromContext(ctx).Error(err, "Failed to list the copies of secrets of a deleted job", "job", job)
			}
			for _, c := range found {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)}, releaseTime)
			}
		},
	}
}
