package imagepulljob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// caches are the caches of the manager. It implements shown.
type caches struct {
	reader *fastclient.Reader
	nodes  *nodeCache
	vault  *vault
}

// Job implements shown.
func (c *caches) Job(ctx context.Context, key types.NamespacedName) (*v1beta1.ImagePullJob, error) {
	return fastclient.Get[v1beta1.ImagePullJob](ctx, c.reader, key)
}

// NodeImage implements shown.
func (c *caches) NodeImage(ctx context.Context, name string) (*nodeimage.NodeImage, error) {
	return fastclient.Get[nodeimage.NodeImage](ctx, c.reader, types.NamespacedName{Name: name})
}

// NodeImages implements shown.
func (c *caches) NodeImages(ctx context.Context) ([]*nodeimage.NodeImage, error) {
	return fastclient.All[nodeimage.NodeImage](ctx, c.reader, "")
}

// NodeImagesOf implements shown.
func (c *caches) NodeImagesOf(ctx context.Context, job types.UID) ([]*nodeimage.NodeImage, error) {
	return fastclient.ByIndex[nodeimage.NodeImage](ctx, c.reader, "", jobIndex, string(job))
}

// Nodes implements shown.
func (c *caches) Nodes(ctx context.Context) ([]*corev1.Node, bool, error) {
	return c.nodes.all(ctx, c.reader)
}

// Secret implements shown.
func (c *caches) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	return fastclient.Get[corev1.Secret](ctx, c.reader, types.NamespacedName{Namespace: c.vault.namespace, Name: name})
}

// Copies implements shown.
func (c *caches) Copies(ctx context.Context, key string) ([]*corev1.Secret, error) {
	return fastclient.ByIndex[corev1.Secret](ctx, c.reader, "", copyIndex, key)
}

// Lacking implements shown.
func (c *caches) Lacking(ctx context.Context) []string { return c.vault.access.Lacking(ctx) }
