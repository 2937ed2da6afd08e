package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/ports"
)

const (
	assetsVariable = "KUBEBUILDER_ASSETS"
	ciVariable     = "CI"
	missing        = assetsVariable + " does not name the folder of etcd and kube-apiserver"
)

// Options describe what the environment has besides the built-in kinds.
type Options struct {
	// CRDs are files or folders with CustomResourceDefinitions; a missing one fails the run.
	CRDs []string
	// Webhooks are the webhook configurations to install. They are changed to call a local port, which managers of the
	// environment serve.
	Webhooks envtest.WebhookInstallOptions
	// Scheme knows the kinds of the tests; nil means those of client-go.
	Scheme *runtime.Scheme
	// RuntimeConfig is the value of the API server's --runtime-config; empty leaves its default.
	RuntimeConfig string
	// FeatureGates is the value of the API server's --feature-gates; empty leaves its default.
	FeatureGates string
	// AdmissionPlugins are enabled besides the default ones, separated by commas.
	AdmissionPlugins string
}

// OwnersChecked is an admission plugin that some distributions enable. A client that changes owner references of an
// object must have the right to delete the object, and one that sets blockOwnerDeletion the right to update the owner's
// finalizers.
const OwnersChecked = "OwnerReferencesPermissionEnforcement"

// Environment is the control plane of one test package. Its zero value is ready for Run.
type Environment struct {
	// Config reaches the API server as an administrator without client-side rate limit; nil when there is no server.
	Config *rest.Config
	// Scheme knows the kinds of the tests.
	Scheme *runtime.Scheme

	plane   *envtest.ControlPlane
	envtest *envtest.Environment
	audit   string
	cleaner *rest.Config
	before  []object // what is there at the start
	tests   *tests   // shared by copies
}

// tests is what is known of the tests that run.
type tests struct {
	mu         sync.Mutex
	namespaces map[string]string  // the names of the tests by their namespaces
	shared     map[types.UID]bool // the objects that several tests use
	logs       map[testing.TB]*operatorLog
}

// Run starts the control plane, runs the tests of the package and stops the control plane. It ends the process with an
// error when the control plane cannot be started, and when all tests passed and objects of them are left, which it names.
func (e *Environment) Run(m *testing.M, o Options) {
	log.SetLogger(zap.New(zap.UseDevMode(true), zap.Level(zapErrorLevel)))
	os.Exit(e.run(m, o))
}

func (e *Environment) run(m *testing.M, o Options) int {
	if os.Getenv(assetsVariable) == "" {
		fmt.Fprintln(os.Stderr, "testenv: no API server: "+missing)
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "testenv")
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv: make a folder:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := e.start(folder, o); err != nil {
		fmt.Fprintln(os.Stderr, "testenv: start the control plane:", err)
		return 1
	}
	defer func() { _ = e.plane.Stop() }()
	if code := m.Run(); code != 0 {
		return code
	}
	return e.checkLeftBehind()
}

func (e *Environment) start(folder string, o Options) error {
	e.Scheme = o.Scheme
	if e.Scheme == nil {
		e.Scheme = clientgoscheme.Scheme
	}
	e.audit = filepath.Join(folder, "audit.log")
	policy := filepath.Join(folder, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	e.plane = &envtest.ControlPlane{Etcd: &envtest.Etcd{StartTimeout: await.Limit, StopTimeout: await.Limit}}
	server := e.plane.GetAPIServer()
	server.StartTimeout, server.StopTimeout = await.Limit, await.Limit
	args := server.Configure()
	args.Set("audit-policy-file", policy)
	args.Set("audit-log-path", e.audit)
	args.Set("audit-log-format", "json")
	if o.RuntimeConfig != "" {
		args.Set("runtime-config", o.RuntimeConfig)
	}
	if o.FeatureGates != "" {
		args.Set("feature-gates", o.FeatureGates)
	}
	if o.AdmissionPlugins != "" {
		args.Set("enable-admission-plugins", o.AdmissionPlugins)
	}
	if err := e.plane.Start(); err != nil {
		return err
	}
	err := e.prepare(o)
	if err != nil {
		_ = e.plane.Stop()
	}
	return err
}

// prepare brings what the tests need to the API server that has started.
func (e *Environment) prepare(o Options) error {
	ctx, stop := context.WithTimeout(context.Background(), await.Limit)
	defer stop()
	admin, err := e.plane.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
	if err != nil {
		return fmt.Errorf("add an administrator: %w", err)
	}
	e.Config = admin.Config()
	if err := e.awaitDefaultNamespace(ctx); err != nil {
		return err
	}
	existing := true
	e.envtest = &envtest.Environment{
		UseExistingCluster:    &existing,
		Config:                e.Config,
		CRDDirectoryPaths:     o.CRDs,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: await.Limit},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: o.Webhooks,
		Scheme:                e.Scheme,
	}
	hooks := &e.envtest.WebhookInstallOptions
	hooks.MaxTime, hooks.LocalServingHost = await.Limit, "127.0.0.1"
	free, err := ports.Free(ctx, 1)
	if err != nil {
		return err
	}
	hooks.LocalServingPort = free[0]
	if _, err := e.envtest.Start(); err != nil {
		return err
	}
	e.tests = &tests{
		namespaces: map[string]string{},
		shared:     map[types.UID]bool{},
		logs:       map[testing.TB]*operatorLog{},
	}
	if err := e.addCleaner(ctx); err != nil {
		return err
	}
	e.before, err = e.objects(ctx)
	return err
}

// awaitDefaultNamespace waits until the API server has made the namespace default, for which envtest waits five seconds.
func (e *Environment) awaitDefaultNamespace(ctx context.Context) error {
	c, err := client.New(e.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the namespace default: %w", err)
	}
	return nil
}

// Need skips the test when there is no API server; where the variable CI is set, it fails the test.
func (e *Environment) Need(t testing.TB) {
	t.Helper()
	// Both variables are read within a test, so that go test knows that its cached result depends on them.
	assets, ci := os.Getenv(assetsVariable), os.Getenv(ciVariable)
	switch {
	case e.Config != nil:
	case ci != "":
		t.Fatal(missing)
	default:
		t.Skipf("%s=%q: %s", assetsVariable, assets, missing)
	}
}

// ConfigAs returns Config with the user agent, which identifies the client in the audit log. The name of the test follows
// it.
func (e *Environment) ConfigAs(t testing.TB, userAgent string) *rest.Config {
	t.Helper()
	e.Need(t)
	config := rest.CopyConfig(e.Config)
	config.UserAgent = userAgent + "/" + t.Name()
	return config
}

// Client returns a client that reads from and writes to the server without a cache. The objects that it creates go when the
// test ends.
func (e *Environment) Client(t testing.TB) client.Client {
	t.Helper()
	return e.ClientAs(t, "test")
}

// ClientAs returns Client with the user agent.
func (e *Environment) ClientAs(t testing.TB, userAgent string) client.Client {
	t.Helper()
	c, err := client.New(e.ConfigAs(t, userAgent), client.Options{Scheme: e.Scheme})
	require.NoError(t, err)
	return made{Client: c, env: e, t: t}
}

// User makes a user without any rights and returns its client configuration.
func (e *Environment) User(t testing.TB, name string) *rest.Config {
	t.Helper()
	e.Need(t)
	user, err := e.plane.AddUser(envtest.User{Name: name}, rest.CopyConfig(e.Config))
	require.NoError(t, err)
	return user.Config()
}

// Namespace makes a namespace for the test and returns its name. It goes with all of its objects when the test ends. A test
// that has failed keeps a bundle of them before.
func (e *Environment) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	c, err := client.New(e.ConfigAs(t, "test"), client.Options{Scheme: e.Scheme})
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), ns))
	e.tests.mu.Lock()
	defer e.tests.mu.Unlock()
	e.tests.namespaces[ns.Name] = t.Name()
	t.Cleanup(func() { e.cleanUp(t, ns.Name) })
	return ns.Name
}
