package rehearse

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/informers"
)

// controller has the parts with which a pass reads. What writes is the operator of the world.
func controller(w *cluster.World, c *informers.Cache) *pass.Controller {
	live := liveOf(w)
	return &pass.Controller{
		Client: live,
		Live:   live,
		Reader: fastclient.NewReader(c, runtime.NewScheme(), fastclient.Options{}),
		Clock:  w,
	}
}

// discovery is that of a cluster that serves ImagePullJob.
type discovery struct{}

// ServerResourcesForGroupVersion implements optional.Discovery.
func (discovery) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: contract.ImagePullJobResource}}}, nil
}
