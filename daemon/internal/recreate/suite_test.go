package recreate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/engine"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate"
)

const (
	userAgent = "daemon-manager/containerrecreaterequest"
	patience  = 20 * time.Second
)

var env testenv.Environment

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	env.Run(m, testenv.Options{CRDs: []string{"../../config/crd/containerrecreaterequests.yaml"}, Scheme: scheme})
}

// givenController runs the controller until the end of the test, and checks then that nobody has changed an
// object of the cache.
func givenController(t *testing.T) client.Client {
	t.Helper()
	env.Need(t)
	detector := &fastclient.Detector{}
	t.Cleanup(func() { detector.Check(t) })
	mgr := env.Manager(t, func(o *manager.Options) {
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: podcache.ByObject("")}
	})
	require.NoError(t, recreate.SetUp(t.Context(), mgr, engine.Settings{Reader: fastclient.Options{Detector: detector}, UserAgent: userAgent}))
	env.Start(t, mgr)
	return env.Client(t)
}

// eventually waits until the assertions hold.
func eventually(t *testing.T, check func(c *assert.CollectT)) {
	t.Helper()
	require.EventuallyWithT(t, check, patience, 20*time.Millisecond)
}
