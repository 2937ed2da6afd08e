package setup

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		Scheme:           testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
		Webhooks:         envtest.WebhookInstallOptions{Paths: []string{"../config/webhook"}},
		AdmissionPlugins: testenv.OwnersChecked,
	})
}

func givenCRDs(t *testing.T) {
	t.Helper()
	env.Need(t)
	env.InstallCRDs(t, envtest.CRDInstallOptions{
		Paths: []string{"../config/crd/nodeimages.yaml", "../config/crd/containerrecreaterequests.yaml"}, ErrorIfPathMissing: true,
	})
}

// serve answers the webhooks of the shipped configurations, as the operator does with these feature gates, until the
// test ends.
func serve(t testing.TB, gates features.Set) client.Client {
	t.Helper()
	mgr := env.Manager(t)
	all, err := (&settings{}).webhooks(t.Context(), &manager.Environment{
		Feature: "daemon", Manager: mgr, Clock: clock.RealClock{}, Options: manager.Options{FeatureGates: gates},
	})
	require.NoError(t, err)
	all.Register(mgr.GetWebhookServer())
	env.Start(t, mgr)
	return env.Client(t)
}
