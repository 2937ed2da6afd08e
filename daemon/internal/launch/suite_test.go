package launch_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/internal/launch"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
)

const userAgent = "daemon-manager/launchpriority"

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// givenController runs the controller until the end of the test.
func givenController(t *testing.T) client.Client {
	t.Helper()
	return givenControllerOf(t, env, "")
}

// givenControllerOf runs the controller of one namespace or, when it is empty, of all.
func givenControllerOf(t *testing.T, env testenv.Environment, namespace string) client.Client {
	t.Helper()
	cached := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{
		&corev1.Pod{}: podcache.ByObject(namespace), &corev1.ConfigMap{}: launch.ConfigMaps(namespace),
	})
	cached.NewInformer = podcache.Filter().Limit(cached.NewInformer)
	return env.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
		return launch.SetUp(t.Context(), mgr, pass.Settings{Reader: reader, Namespace: namespace, UserAgent: userAgent})
	})
}
