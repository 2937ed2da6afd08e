package daemonset

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Features: []string{"daemonset"},
		Schemes:  []func(*runtime.Scheme) error{v1beta1.AddToScheme, v1alpha1.AddToScheme},
		Kinds:    []string{"daemonsets.apps.kruise.io", "controllerrevisions", "nodes"},
		Spare:    spare(),
	})
}

// spare returns the permissions that no story uses, with the reason to grant them.
func spare() map[string]string {
	const (
		lost   = "a create whose answer was lost is looked for"
		listed = "where the server begins no watch with a list, there is one before"
	)
	return map[string]string{
		"get pods":                     lost,
		"get controllerrevisions.apps": lost,
		"list nodes":                   listed,
		"list secrets":                 listed,
		"list customresourcedefinitions.apiextensions.k8s.io":               listed,
		"list mutatingwebhookconfigurations.admissionregistration.k8s.io":   listed,
		"list validatingwebhookconfigurations.admissionregistration.k8s.io": listed,
		"list leases.coordination.k8s.io":                                   "without leader election the version of a list is the fence",
		"update secrets":                                                    "certificates are renewed after months",
		"update daemonsets.apps.kruise.io/finalizers":                       "clusters may ask for it of whoever makes an owner block a deletion",
	}
}
