package testenv

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// ServePullJobs serves the fields of ImagePullJob that workloads use, until the test ends. No image is pulled. Jobs for
// image app:refused are rejected.
func (e *Environment) ServePullJobs(t testing.TB) {
	t.Helper()
	e.Need(t)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(imagePullJobs, crd))
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}
	e.InstallCRDs(t, options)
	t.Cleanup(func() {
		require.NoError(t, envtest.UninstallCRDs(e.Config, options))
		await.Until(t, func(check *assert.CollectT) { assert.False(check, e.servesPullJobs(t)) }, "the definition stays")
	})
}

func (e *Environment) servesPullJobs(t testing.TB) bool {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(e.Config)
	require.NoError(t, err)
	list, err := d.ServerResourcesForGroupVersion(contract.ImagePullJobGVK("v1beta1").GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false
	}
	require.NoError(t, err)
	for _, r := range list.APIResources {
		if r.Name == contract.ImagePullJobResource {
			return true
		}
	}
	return false
}
