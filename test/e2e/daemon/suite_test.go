package daemon

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	budgets "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	daemonsets "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	statefulsets "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Features: []string{"daemon"},
		Beside:   []string{"cloneset", "statefulset", "daemonset", "budget"},
		Schemes: []func(*runtime.Scheme) error{
			v1beta1.AddToScheme, v1alpha1.AddToScheme, clonesets.AddToScheme, statefulsets.AddToScheme, daemonsets.AddToScheme, budgets.AddToScheme,
		},
		Kinds: []string{
			"containerrecreaterequests", "clonesets", "statefulsets.apps.kruise.io", "daemonsets.apps.kruise.io", "podunavailablebudgets", "configmaps",
		},
		Spare: spare(),
	})
}

// spare returns the permissions that no story uses, with the reason to grant them.
func spare() map[string]string {
	const (
		lost   = "a write whose answer was lost is looked for"
		listed = "where the server begins no watch with a list, there is one before"
		jobs   = "entries go with the ImagePullJobs that wanted them, where these are served"
	)
	return map[string]string{
		"get containerrecreaterequests.apps.kruise.io":                      lost,
		"get nodeimages.apps.kruise.io":                                     lost,
		"list containerrecreaterequests.apps.kruise.io":                     listed,
		"list nodeimages.apps.kruise.io":                                    listed,
		"list pods":                                                         listed,
		"list nodes":                                                        listed,
		"list secrets":                                                      listed,
		"list customresourcedefinitions.apiextensions.k8s.io":               listed,
		"list mutatingwebhookconfigurations.admissionregistration.k8s.io":   listed,
		"list validatingwebhookconfigurations.admissionregistration.k8s.io": listed,
		"list imagepulljobs.apps.kruise.io":                                 jobs,
		"watch imagepulljobs.apps.kruise.io":                                jobs,
		"delete nodeimages.apps.kruise.io":                                  "a node that leaves the cluster takes its NodeImage along",
		"patch events.events.k8s.io":                                        "events that repeat become one with a count",
		"list leases.coordination.k8s.io":                                   "without leader election the version of a list is the fence",
		"update secrets":                                                    "certificates are renewed after months",
	}
}
