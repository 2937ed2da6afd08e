package story

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/bundle"
	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
)

// clusterVariable names the running cluster that stories use.
const clusterVariable = "FLOTILLA_E2E_CLUSTER"

// Suite describes what the stories of one package need.
type Suite struct {
	// Features are installed before the stories begin, in this order.
	Features []string
	// Beside are features that the stories also need, installed after the others. The permissions of their accounts are
	// checked in their own suites.
	Beside []string
	// Components are folders of components that the features are installed with, such as "spread/config/required".
	Components []string
	// Schemes know the kinds of the stories, besides those of client-go.
	Schemes []func(*runtime.Scheme) error
	// Kinds are shown when a story fails, as kubectl names them, besides pods and events.
	Kinds []string
	// Roles are files with roles that stories grant besides, as an administrator would.
	Roles []string
	// Spare are permissions that the features' accounts have and no story needs, such as "patch
	// clonesets.apps.kruise.io/status", each with the reason to grant it.
	Spare map[string]string
}

// World is a cluster as a suite of tests sees it. Its zero value is ready for Run.
type World struct {
	// Client reads from and writes to the API server, with a watch.
	Client client.WithWatch
	// Cluster is the cluster itself, whose nodes can be crashed and booted.
	Cluster *cluster.Cluster

	suite Suite
	away  *atomic.Bool // whether a story has stopped an operator
	began time.Time    // of the stories
	token string       // of somebody who may read metrics
}

// Run installs the suite's features on the running cluster, runs the tests of the package and ends the process. Without
// a cluster no test is run, which is an error if the variable CI is set. If all tests of the package pass, it fails
// unless the features' accounts have used every permission that they have.
func (w *World) Run(m *testing.M, s Suite) {
	if os.Getenv(clusterVariable) == "" {
		fmt.Printf("e2e: %s names no running cluster; `make test-e2e` starts one\n", clusterVariable)
		if os.Getenv("CI") != "" {
			os.Exit(1)
		}
		return
	}
	if err := w.setUp(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 && wholeSuite() {
		code = w.checkPermissions()
	}
	os.Exit(code)
}

func (w *World) checkPermissions() (code int) {
	wrong, err := w.unneeded()
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	for _, what := range wrong {
		fmt.Fprintln(os.Stderr, "e2e: permissions of", what)
		code = 1
	}
	return code
}

func (w *World) setUp(ctx context.Context, s Suite) error {
	c, err := cluster.Attach(ctx, cluster.Options{Name: os.Getenv(clusterVariable)})
	if err != nil {
		return fmt.Errorf("attach to the cluster: %w", err)
	}
	target := install.Local(c)
	target.Components = s.Components
	if err := target.Apps(ctx, os.Stdout); err != nil {
		return err
	}
	for _, feature := range slices.Concat(s.Features, s.Beside) {
		if err := target.Feature(ctx, feature, os.Stdout); err != nil {
			return err
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range append(s.Schemes, clientgoscheme.AddToScheme) {
		if err := add(scheme); err != nil {
			return fmt.Errorf("build the scheme: %w", err)
		}
	}
	api, err := client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	away := &atomic.Bool{}
	*w = World{
		Client:  patient(api, away),
		Cluster: c,
		suite:   s,
		away:    away,
	}
	w.token, err = w.newReader(ctx)
	w.began = time.Now()
	return err
}

// Namespace makes a namespace for the test and deletes it at the end of the test, without waiting. Finalizers that the
// test has left on pods are removed.
func (w World) Namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	require.NoError(t, w.Client.Create(t.Context(), ns))
	t.Cleanup(func() {
		if t.Failed() {
			w.dump(t, ns.Name)
		}
		ctx := context.WithoutCancel(t.Context())
		_ = w.Client.Delete(ctx, ns) // from now on nothing can be created in it
		list := &corev1.PodList{}
		_ = w.Client.List(ctx, list, client.InNamespace(ns.Name))
		for i := range list.Items {
			if len(list.Items[i].Finalizers) > 0 {
				_ = w.Client.Patch(ctx, &list.Items[i], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
			}
		}
	})
	return ns.Name
}

// dump logs the pods and events of a failed test, before its namespace is deleted, and keeps a bundle of all its objects and
// of the operators' logs.
func (w World) dump(t *testing.T, namespace string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	kinds := strings.Join(append(w.suite.Kinds, "pods", "events"), ",")
	left, _ := w.kubectl(ctx, "", "-n", namespace, "get", kinds, "-o", "wide")
	t.Logf("the objects of %s in %s:\n%s", t.Name(), namespace, left)
	folder, err := bundle.Folder(t)
	if err != nil {
		t.Logf("there is no bundle: %v", err)
		return
	}
	if err := bundle.Write(ctx, w.Cluster.RESTConfig(), namespace, folder); err != nil {
		t.Logf("the bundle is not complete: %v", err)
	}
	for _, feature := range slices.Concat(w.suite.Features, w.suite.Beside) {
		said, _ := w.kubectl(ctx, "", "-n", install.Namespace, "logs", "deployment/"+feature+"-manager")
		if err := os.WriteFile(filepath.Join(folder, feature+"-manager.log"), []byte(said), 0o600); err != nil {
			t.Logf("the bundle is not complete: %v", err)
		}
	}
}

// Kubectl runs kubectl as a user would and returns what it prints. Standard input is the text.
func (w World) Kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	return w.kubectl(t.Context(), input, args...)
}

func (w World) kubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, w.Cluster.Kubectl(), append([]string{"--kubeconfig", w.Cluster.Kubeconfig()}, args...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// KillOperator deletes the pods of the feature's manager without a grace period.
func (w World) KillOperator(t *testing.T, feature string) {
	t.Helper()
	require.NoError(t, w.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(install.Namespace),
		client.MatchingLabels{"app.kubernetes.io/name": feature + "-manager"}, client.GracePeriodSeconds(0)))
}
