package statefulset

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Features: []string{"statefulset"},
		Schemes:  []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		Kinds:    []string{"statefulsets.apps.kruise.io", "persistentvolumeclaims"},
	})
}
