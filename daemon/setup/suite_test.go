package setup

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	coreadmission "github.com/flotilla-project/flotilla/core/admission"
	"github.com/flotilla-project/flotilla/core/features"
	"github.com/flotilla-project/flotilla/core/manager"
	"github.com/flotilla-project/flotilla/core/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	env.Run(m, testenv.Options{Scheme: scheme, Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../config/webhook"}}})
}

func givenCRDs(t *testing.T) {
	t.Helper()
	env.Need(t)
	_, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{
		Paths: []string{"../config/crd/nodeimages.yaml", "../config/crd/containerrecreaterequests.yaml"}, ErrorIfPathMissing: true,
	})
	require.NoError(t, err)
}

// serve answers the webhooks of the shipped configurations, as the operator does with these gates, until the
// test ends.
func serve(t *testing.T, gates features.Set) client.Client {
	t.Helper()
	mgr := env.Manager(t)
	all, err := webhooks(t.Context(), &manager.Environment{
		Feature: "daemon", Manager: mgr, Clock: clock.RealClock{}, Options: manager.Options{Gates: gates},
	})
	require.NoError(t, err)
	for _, e := range append(all.Mutating, all.Validating...) {
		mgr.GetWebhookServer().Register(e.Path, e.Handler)
	}
	mgr.GetWebhookServer().Register(coreadmission.ConvertPath, all.Converting)
	env.Start(t, mgr)
	return env.Client(t)
}
