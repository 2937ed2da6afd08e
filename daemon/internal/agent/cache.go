package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta"
)

// cacheOptions say what the agent keeps in memory: what concerns its node, and of pods only what it reads.
func cacheOptions(node string) cache.Options {
	return cache.Options{
		DefaultTransform: fastclient.Trim,
		ByObject: map[client.Object]cache.ByObject{
			&v1beta1.NodeImage{}: {Field: fields.OneTermEqualSelector("metadata.name", node), Transform: fastclient.Trim},
			&v1beta1.ContainerRecreateRequest{}: {
				Label:     labels.SelectorFromSet(labels.Set{v1beta1.NodeNameLabel: node, v1beta1.ActiveLabel: "true"}),
				Transform: fastclient.Trim,
			},
			&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.nodeName", node), Transform: containermeta.Trim},
		},
	}
}
