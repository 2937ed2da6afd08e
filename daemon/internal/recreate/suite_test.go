package recreate_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/controllers/scope"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate"
)

const userAgent = "daemon-manager/containerrecreaterequest"

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{"../../config/crd/containerrecreaterequests.yaml"}, Scheme: testenv.Scheme(v1beta1.AddToScheme)})
}

// givenController runs the controller until the end of the test.
func givenController(t *testing.T) client.Client {
	t.Helper()
	return givenControllerWith(t, &recreate.Backlog{})
}

func givenControllerWith(t *testing.T, backlog *recreate.Backlog) client.Client {
	t.Helper()
	cached, pods := cacheOf("")
	return env.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
		return recreate.SetUp(t.Context(), mgr, pass.Settings{Reader: reader, UserAgent: userAgent}, backlog, pods)
	})
}

// cacheOf returns the options of the manager's cache of one namespace or, when it is empty, of all, and its filter of pods.
func cacheOf(namespace string) (cache.Options, *scope.Filter) {
	o, pods := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{&corev1.Pod{}: podcache.ByObject(namespace)}), podcache.Filter()
	o.NewInformer = pods.Limit(o.NewInformer)
	return o, pods
}
