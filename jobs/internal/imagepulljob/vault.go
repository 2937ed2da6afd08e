package imagepulljob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

// syncPatience is how long the start waits for the cache of copies. Later looks continue to wait.
const syncPatience = 10 * time.Second

// vault is the namespace of the copies of pull secrets, with a cache of its own. Another module grants the rights to it:
// where they are lacking, jobs with pull secrets wait and nothing else does.
type vault struct {
	access    *optional.Access
	namespace string
	cache     cache.Cache // of open; nil before
}

// rights are the permissions that the manager needs for secrets in the namespace of the copies.
func rights(namespace string) optional.Rights {
	return optional.Rights{
		Namespace: namespace,
		Resource:  "secrets",
		Verbs:     []string{"list", "watch", "create", "patch", "delete"},
	}
}

// secrets returns the settings of the cache of secrets: copies of pull secrets in one namespace, and no others.
func secrets(namespace string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.namespace", namespace), Transform: fastclient.Trim}
}

// open starts the cache once the rights are there, until process ends, and reports whether it has synced.
func (v *vault) open(process, ctx context.Context, mgr ctrl.Manager) (bool, error) {
	if len(v.access.Lacking(ctx)) > 0 {
		return false, nil
	}
	if v.cache == nil {
		o := fastclient.CacheOptions("", map[client.Object]cache.ByObject{&corev1.Secret{}: secrets(v.namespace)})
		made, err := optional.StartCache(process, mgr, o) // it outlives the look that has started it
		if err != nil {
			return false, err
		}
		if err := indexCopies(ctx, made); err != nil {
			return false, err
		}
		v.cache = made
	}
	return optional.SyncWithin(ctx, syncPatience, v.cache, &corev1.Secret{})
}

// with returns the manager with a cache that reads secrets from the vault's cache.
func (v *vault) with(mgr ctrl.Manager) ctrl.Manager {
	return optional.WithCache(mgr, besideCopies{Cache: mgr.GetCache(), copies: v.cache})
}

// besideCopies is a cache that reads secrets from the cache of copies.
type besideCopies struct {
	cache.Cache
	copies cache.Cache
}

func (b besideCopies) of(object any) cache.Cache {
	switch object.(type) {
	case *corev1.Secret, *corev1.SecretList:
		return b.copies
	}
	return b.Cache
}

// Get implements client.Reader.
func (b besideCopies) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return b.of(o).Get(ctx, key, o, options...)
}

// List implements client.Reader.
func (b besideCopies) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return b.of(list).List(ctx, list, options...)
}

// GetInformer implements cache.Informers.
func (b besideCopies) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	return b.of(o).GetInformer(ctx, o, options...)
}

// IndexField implements client.FieldIndexer.
func (b besideCopies) IndexField(ctx context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	return b.of(o).IndexField(ctx, o, field, keys)
}
