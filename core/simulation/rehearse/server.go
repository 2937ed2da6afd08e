package rehearse

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

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
		Client: live, Live: live, Reader: fastclient.NewReader(c, runtime.NewScheme(), fastclient.Options{}), Clock: worldClock{w},
	}
}

// worldClock tells the time of a world.
type worldClock struct{ world *cluster.World }

var _ clock.PassiveClock = worldClock{}

// Now returns the moment of the world.
func (c worldClock) Now() time.Time { return c.world.Now() }

// Since returns how long ago a moment was.
func (c worldClock) Since(t time.Time) time.Duration { return c.world.Now().Sub(t) }

// discovery is that of a cluster that serves ImagePullJob.
type discovery struct{}

// ServerResourcesForGroupVersion implements optional.Discovery.
func (discovery) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: contract.ImagePullJobResource}}}, nil
}
