package spread

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Features: []string{"spread"},
		Beside:   []string{"cloneset"},
		// A busy machine may not ask the webhook in time. Without the component a pod would be created without a subset then.
		Components: []string{"spread/config/required"},
		Schemes:    []func(*runtime.Scheme) error{v1beta1.AddToScheme, clonesets.AddToScheme},
		Roles:      []string{gameServers},
		Kinds:      []string{"workloadspreads", "clonesets", "deployments", "statefulsets.apps", "jobs", "replicasets"},
		Spare:      spare(),
	})
}

// spare returns the permissions that no story uses, with the reason to grant them.
func spare() map[string]string {
	const (
		lost   = "a write whose answer was lost is looked for"
		listed = "where the server begins no watch with a list, there is one before"
		young  = "an owner, or a spread, that the cache does not have yet is looked for"
		share  = "percentages are of Deployments and CloneSets in these stories"
		absent = "where Advanced StatefulSets are served, which are numbered and spread as the built-in ones"
	)
	return map[string]string{
		"get pods":                                            lost,
		"get namespaces":                                      lost,
		"list namespaces":                                     listed,
		"get deployments.apps":                                young,
		"get replicasets.apps":                                young,
		"get jobs.batch":                                      young,
		"get clonesets.apps.kruise.io":                        young,
		"get gameserversets.example.io":                       young,
		"get workloadspreads.apps.kruise.io":                  young,
		"list workloadspreads.apps.kruise.io":                 young,
		"get replicasets.apps/scale":                          share,
		"list pods":                                           listed,
		"list nodes":                                          listed,
		"list configmaps":                                     listed,
		"list secrets":                                        listed,
		"get statefulsets.apps.kruise.io":                     absent,
		"list statefulsets.apps.kruise.io":                    absent,
		"watch statefulsets.apps.kruise.io":                   absent,
		"list customresourcedefinitions.apiextensions.k8s.io": listed,
		"list mutatingwebhookconfigurations.admissionregistration.k8s.io":   listed,
		"list validatingwebhookconfigurations.admissionregistration.k8s.io": listed,
		"patch events.events.k8s.io":                                        "events that repeat become one with a count",
		"list leases.coordination.k8s.io":                                   "without leader election the version of a list is the fence",
		"update secrets":                                                    "certificates are renewed after months",
	}
}
