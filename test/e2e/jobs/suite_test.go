package jobs

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	daemonsets "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	statefulsets "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

const (
	app = "flotilla/demo-app:"
	// sidecarRole is the role that the operator also needs if it stops sidecars.
	sidecarRole = "../../../jobs/config/sidecarterminator/role.yaml"
)

var world story.World

func TestMain(m *testing.M) {
	world.Run(m, story.Suite{
		Features: []string{"jobs"},
		Beside:   []string{"daemon", "cloneset", "statefulset", "daemonset"},
		Schemes: []func(*runtime.Scheme) error{
			v1beta1.AddToScheme, v1alpha1.AddToScheme, daemon.AddToScheme, clonesets.AddToScheme, statefulsets.AddToScheme, daemonsets.AddToScheme,
		},
		Kinds: []string{
			"jobs", "containerrecreaterequests", "imagelistpulljobs", "imagepulljobs", "broadcastjobs", "advancedcronjobs", "clonesets",
			"statefulsets.apps.kruise.io", "daemonsets.apps.kruise.io",
		},
		Roles: []string{sidecarRole},
		Spare: spare(),
	})
}

// spare returns the permissions that no story uses, with the reason to grant them.
func spare() map[string]string {
	all := map[string]string{
		"delete containerrecreaterequests.apps.kruise.io": "a request that the next one waits for is in its way",
		"get secrets":                             "pull secrets of jobs",
		"get namespaces":                          "where these are copied to",
		"get statefulsets.apps.kruise.io":         "images are pulled in the order in which its pods are updated",
		"patch events.events.k8s.io":              "events that repeat become one with a count",
		"list leases.coordination.k8s.io":         "without leader election the version of a list is the fence",
		"update secrets":                          "certificates are renewed after months",
		"delete imagelistpulljobs.apps.kruise.io": "lists go when their time is over",
		"patch imagepulljobs.apps.kruise.io":      "jobs with pull secrets stay until the copies are gone",
		"delete imagepulljobs.apps.kruise.io":     "a list that is edited drops images",
	}
	const (
		lost   = "a write whose answer was lost is looked for"
		listed = "where the server begins no watch with a list, there is one before"
		owner  = "clusters may ask for it of whoever makes an owner block a deletion"
	)
	for _, kind := range []string{
		"pods", "jobs.batch", "nodeimages.apps.kruise.io", "imagepulljobs.apps.kruise.io", "imagelistpulljobs.apps.kruise.io",
		"advancedcronjobs.apps.kruise.io", "broadcastjobs.apps.kruise.io", "containerrecreaterequests.apps.kruise.io",
	} {
		all["get "+kind] = lost
	}
	for _, kind := range []string{
		"pods", "nodes", "secrets", "jobs.batch", "containerrecreaterequests.apps.kruise.io", "nodeimages.apps.kruise.io",
		"imagepulljobs.apps.kruise.io", "imagelistpulljobs.apps.kruise.io", "advancedcronjobs.apps.kruise.io", "broadcastjobs.apps.kruise.io",
		"customresourcedefinitions.apiextensions.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io",
	} {
		all["list "+kind] = listed
	}
	for _, kind := range []string{"advancedcronjobs", "broadcastjobs", "imagelistpulljobs"} {
		all["update "+kind+".apps.kruise.io/finalizers"] = owner
	}
	return all
}

// givenTerminator turns on the feature gate with which sidecars are stopped, and grants the role that it needs, as an
// administrator does.
func givenTerminator(t *testing.T) {
	t.Helper()
	givenRole(t, sidecarRole)
	world.TurnOn(t, "jobs-manager", "SidecarTerminator")
}

// givenRole grants a role that a manager needs besides where a gate is on.
func givenRole(t *testing.T, file string) {
	t.Helper()
	out, err := world.Kubectl(t, "", "apply", "-f", file)
	require.NoError(t, err, out)
}

// publish makes a version of the demo application available by another reference, as an image that no node has by any
// other name: kubelets ask the registry again for content that they pulled by another name (KEP-2535).
func publish(t *testing.T, version, reference string) {
	t.Helper()
	from, err := name.ParseReference(world.Cluster.Registry()+"/"+app+version, name.Insecure)
	require.NoError(t, err)
	image, err := remote.Image(from, remote.WithContext(t.Context()))
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	config.Config.Labels = map[string]string{"reference": reference}
	image, err = mutate.Config(image, config.Config)
	require.NoError(t, err)
	require.NoError(t, world.Cluster.PushImage(t.Context(), reference, image))
}

// examples returns the YAML examples of the page.
func examples(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("../../../docs/features/%s.md", page))
	require.NoError(t, err)
	var all []string
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		all = append(all, block[1])
	}
	require.NotEmpty(t, all)
	return all
}
