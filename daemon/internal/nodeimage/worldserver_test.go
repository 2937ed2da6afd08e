package nodeimage

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/informers"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

const jobVersion = "v1beta1"

var (
	errAway  = errors.New("the server does not answer")
	errWhole = errors.New("more than metadata is read")
)

func notFound(key types.NamespacedName) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// metadata is an object without its content.
func metadata(gvk schema.GroupVersionKind, key types.NamespacedName, uid types.UID) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}
	o.SetGroupVersionKind(gvk)
	return o
}

func secretKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
}

func jobKind() schema.GroupVersionKind { return contract.ImagePullJobGVK(jobVersion) }

// uidOf returns the UID of the object that there is now, empty for none.
func uidOf(w *simulate.World, gvk schema.GroupVersionKind, key types.NamespacedName) types.UID {
	if o := w.Latest(metadata(gvk, key, "")); o != nil {
		return o.GetUID()
	}
	return ""
}

// server is what the passes ask the server of the world, and the clock.
type server struct {
	client.Reader // nil
	*life
}

func (s server) Now() time.Time                  { return s.w.Now() }
func (s server) Since(t time.Time) time.Duration { return s.w.Now().Sub(t) }

// Get reads the metadata of a secret.
func (s server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	found, ok := into.(*metav1.PartialObjectMetadata)
	switch {
	case s.away():
		return errAway
	case !ok || found.Kind != secretKind().Kind:
		return errWhole
	}
	uid := uidOf(s.w, secretKind(), key)
	if uid == "" {
		return notFound(key)
	}
	metadata(secretKind(), key, uid).DeepCopyInto(found)
	return nil
}

// List reads the metadata of a job.
func (s server) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	found, ok := list.(*metav1.PartialObjectMetadataList)
	var o client.ListOptions
	o.ApplyOptions(options)
	name, selects := o.FieldSelector.RequiresExactMatch("metadata.name")
	switch {
	case s.away():
		return errAway
	case !ok || !selects || found.Kind != jobKind().Kind && found.Kind != jobKind().Kind+"List":
		return errWhole
	}
	key := types.NamespacedName{Namespace: o.Namespace, Name: name}
	if uid := uidOf(s.w, jobKind(), key); uid != "" {
		found.Items = append(found.Items, *metadata(jobKind(), key, uid))
	}
	return nil
}

// cachedJobs is the cache of ImagePullJobs, which may lag.
type cachedJobs struct {
	client.Reader // nil
	cache         *informers.Cache
}

// Get reads the metadata of a job.
func (c cachedJobs) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	informer, err := c.cache.GetInformer(ctx, into)
	if err != nil {
		return err
	}
	item, there, err := informer.(interface{ GetIndexer() toolscache.Indexer }).GetIndexer().GetByKey(key.String())
	if err != nil || !there {
		return errors.Join(err, notFound(key))
	}
	item.(*metav1.PartialObjectMetadata).DeepCopyInto(into.(*metav1.PartialObjectMetadata))
	return nil
}
