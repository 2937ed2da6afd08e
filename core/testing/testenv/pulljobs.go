package testenv

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// ServePullJobs serves the fields of ImagePullJob that workloads use, until the test ends. No image is pulled. Jobs for
// image app:refused are rejected.
func (e *Environment) ServePullJobs(t testing.TB) {
	t.Helper()
	e.Need(t)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(imagePullJobs, crd))
	e.Serve(t, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
}

// Serve serves the kinds of CRDs until the test ends, for tests and others that also see what happens without them. Their
// objects go with them.
func (e *Environment) Serve(t testing.TB, o envtest.CRDInstallOptions) {
	t.Helper()
	installed := e.InstallCRDs(t, o)
	t.Cleanup(func() {
		require.NoError(t, envtest.UninstallCRDs(e.Config, envtest.CRDInstallOptions{CRDs: installed}))
		await.Until(t, func(check *assert.CollectT) {
			for _, crd := range installed {
				assert.False(check, e.serves(t, crd), "%s stays", crd.Name)
			}
		})
	})
}

// serves reports whether discovery names the resource of the CRD in one of its versions.
func (e *Environment) serves(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition) bool {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(e.Config)
	require.NoError(t, err)
	for _, version := range crd.Spec.Versions {
		list, err := d.ServerResourcesForGroupVersion(crd.Spec.Group + "/" + version.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		require.NoError(t, err)
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural }) {
			return true
		}
	}
	return false
}
