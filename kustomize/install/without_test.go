package install_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

func TestOnlyComponentsOfTheDefaultsCanBeLeftOut(t *testing.T) {
	cases := []struct {
		name                          string
		features, without, components []string
		want                          string
	}{
		{"an unknown one", []string{"jobs"}, []string{"helm"}, nil, "--without helm: must be a component that is installed by default: use pullsecrets"},
		{"one to add", []string{"jobs"}, []string{"certmanager"}, nil, "--without certmanager: must be a component that is installed by default: use pullsecrets"},
		{"of another feature", []string{"cloneset"}, []string{"pullsecrets"}, nil, "--without pullsecrets: these features have no component that is installed by default"},
		{"both", []string{"jobs"}, []string{"pullsecrets"}, []string{"pullsecrets"}, "--without pullsecrets contradicts --component pullsecrets: use one of them"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := install.Read(selected(t, c.features...), install.Choices{Without: c.without, Components: c.components})

			require.EqualError(t, err, c.want)
			assert.Equal(t, cli.Misused, cli.CodeOf(err))
		})
	}
}

// grantsOfSecrets returns kinds, namespaces and names of the objects of jobs by which its manager may read pull secrets.
func grantsOfSecrets(t *testing.T, settings install.Settings) (names []string) {
	t.Helper()
	objects, err := install.Manifests(selected(t, "jobs")[0], settings)
	require.NoError(t, err)
	for _, object := range objects {
		if strings.HasPrefix(object.GetName(), "jobs-manager-pullsecrets") {
			names = append(names, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
		}
	}
	return names
}

// A component that features have by default is there, named or not, and is gone when it is left out, in one namespace, too.
func TestAComponentIsLeftOut(t *testing.T) {
	whole := []string{"ClusterRole /jobs-manager-pullsecrets", "ClusterRoleBinding /jobs-manager-pullsecrets"}
	team := []string{"Role team/jobs-manager-pullsecrets", "RoleBinding team/jobs-manager-pullsecrets"}
	named, out := []string{"pullsecrets"}, []string{"pullsecrets"}
	assert.ElementsMatch(t, whole, grantsOfSecrets(t, install.Settings{}))
	assert.ElementsMatch(t, whole, grantsOfSecrets(t, install.Settings{Components: named}))
	assert.ElementsMatch(t, whole, grantsOfSecrets(t, install.Everything(selected(t, "jobs")[0])))
	assert.ElementsMatch(t, team, grantsOfSecrets(t, install.Settings{OnlyNamespace: "team"}))
	assert.Empty(t, grantsOfSecrets(t, install.Settings{Without: out}))
	assert.Empty(t, grantsOfSecrets(t, install.Settings{Without: out, OnlyNamespace: "team"}))

	cloneset := selected(t, "cloneset")[0]
	with, err := install.Manifests(cloneset, install.Settings{})
	require.NoError(t, err)
	without, err := install.Manifests(cloneset, install.Settings{Without: out})
	require.NoError(t, err)
	assert.Equal(t, with, without, "another feature of the same run")
}

// A component stays out until it is named.
func TestAComponentStaysOut(t *testing.T) {
	features := selected(t, catalog.All)
	jobs := selected(t, "jobs")[0]
	over := func(choices install.Choices, earlier install.Settings) install.Settings {
		chosen, err := install.Read(features, choices)
		require.NoError(t, err)
		return chosen.Over(jobs, earlier)
	}
	out := over(install.Choices{Without: []string{"pullsecrets"}}, install.Settings{})
	assert.Equal(t, []string{"pullsecrets"}, out.Without)
	assert.Equal(t, []string{"pullsecrets"}, over(install.Choices{Components: []string{"highavailability"}}, out).Without)

	again := over(install.Choices{Components: []string{"pullsecrets"}}, out)

	assert.Empty(t, again.Without)
	assert.Empty(t, again.Components, "it needs no mention")
}

func TestALeftOutComponentIsRememberedAndComesBack(t *testing.T) {
	clitest.NeedsServer(t)
	role := func() bool {
		roles := clitest.Objects(t).Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"})
		found, err := roles.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=jobs-manager-pullsecrets"})
		require.NoError(t, err)
		return len(found.Items) > 0
	}
	run := func(arguments ...string) string {
		output, code := call(t, clitest.Administrator, append([]string{"install", "jobs", "--registry", "registry.example", "--wait=false"}, arguments...)...)
		require.Equal(t, cli.Done, code, output)
		return output
	}
	run()
	assert.True(t, role())

	output := run("--without", "pullsecrets")
	assert.Contains(t, output, "jobs leftovers: deleted: ClusterRoleBinding jobs-manager-pullsecrets, ClusterRole jobs-manager-pullsecrets")
	assert.False(t, role())

	output = run()
	assert.Contains(t, output, "jobs keeps --without=pullsecrets (--defaults discards these settings)\n")
	assert.False(t, role())

	run("--component", "pullsecrets")
	assert.True(t, role())
	output, code := call(t, clitest.Administrator, "uninstall", "jobs")
	require.Equal(t, cli.Done, code, output)
	assert.False(t, role())
}
