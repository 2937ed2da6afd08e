package simulate

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	budget "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	cloneset "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	daemonset "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	statefulset "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Beside:  []string{"cloneset", "statefulset", "daemonset", "budget"},
		Schemes: []func(*runtime.Scheme) error{budget.AddToScheme, cloneset.AddToScheme, daemonset.AddToScheme, statefulset.AddToScheme},
		Kinds:   []string{"clonesets.apps.kruise.io", "statefulsets.apps.kruise.io", "daemonsets.apps.kruise.io", "podunavailablebudgets"},
	})
}
