package budget

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	daemonsets "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	statefulsets "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Features: []string{"budget"},
		Beside:   []string{"cloneset", "statefulset", "daemonset"},
		Schemes:  []func(*runtime.Scheme) error{v1beta1.AddToScheme, clonesets.AddToScheme, statefulsets.AddToScheme, daemonsets.AddToScheme},
		Kinds:    []string{"podunavailablebudgets", "clonesets", "statefulsets.apps.kruise.io", "daemonsets.apps.kruise.io", "deployments", "poddisruptionbudgets"},
		Spare:    spare(),
	})
}

// spare returns the permissions that no story uses, with the reason to grant them.
func spare() map[string]string {
	const (
		listed = "where the server begins no watch with a list, there is one before"
		others = "budgets of kinds whose stories are not told here"
	)
	all := map[string]string{
		"list leases.coordination.k8s.io":            "without leader election the version of a list is the fence",
		"update secrets":                             "certificates are renewed after months",
		"patch events.events.k8s.io":                 "events that repeat become one with a count",
		"get namespaces":                             "a write whose answer was lost is looked for",
		"get nodes":                                  "a node that the cache does not have may be new, or gone",
		"get podunavailablebudgets.policy.kruise.io": "a ledger that another replica has written meanwhile is read anew",
	}
	for _, kind := range []string{
		"pods", "namespaces", "secrets", "podunavailablebudgets.policy.kruise.io", "deployments.apps", "replicasets.apps", "clonesets.apps.kruise.io",
		"customresourcedefinitions.apiextensions.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io",
	} {
		all["list "+kind] = listed
	}
	for _, kind := range []string{"deployments.apps", "replicasets.apps", "clonesets.apps.kruise.io"} {
		all["get "+kind] = "an owner that the cache does not have yet is looked for"
	}
	for _, kind := range []string{
		"statefulsets.apps", "daemonsets.apps", "replicationcontrollers", "jobs.batch", "statefulsets.apps.kruise.io",
		"broadcastjobs.apps.kruise.io",
	} {
		for _, verb := range []string{"get", "list", "watch"} {
			all[verb+" "+kind] = others
		}
	}
	for _, kind := range []string{"replicasets.apps", "statefulsets.apps", "replicationcontrollers", "statefulsets.apps.kruise.io"} {
		all["get "+kind+"/scale"] = others
	}
	all["get *.*/scale"] = "budgets of workloads of other operators"
	return all
}
