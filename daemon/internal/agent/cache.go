package agent

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerrestart"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull"
)

// cacheOptions define the objects that the agent keeps in memory: objects of its node, and only the fields of pods that it
// reads.
func cacheOptions(node string) cache.Options {
	return fastclient.CacheOptions("", map[client.Object]cache.ByObject{
		&v1beta1.NodeImage{}:                imagepull.NodeImages(node),
		&v1beta1.ContainerRecreateRequest{}: containerrestart.Requests(node),
		&corev1.Pod{}:                       containermeta.Pods(node),
	})
}
