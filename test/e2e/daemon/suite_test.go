package daemon

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Features: []string{"daemon", "cloneset"},
		Schemes:  []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme, clonesets.AddToScheme},
		Kinds:    []string{"containerrecreaterequests", "clonesets", "configmaps"},
	})
}
