package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"

	"github.com/flotilla-project/flotilla/test/cluster"
	testinstall "github.com/flotilla-project/flotilla/test/install"
	"github.com/flotilla-project/flotilla/test/managers"
	"github.com/flotilla-project/flotilla/test/story"
)

const (
	nodes = 3
	// fewErrors is how often a manager may log the same error: conflicts and calls of webhooks that are not there yet are
	// tried again, and end.
	fewErrors = 3
	// starts is how long a manager may wait for its certificates where seven of them start at once on a busy machine.
	starts = 4 * time.Minute
)

// world is the control plane that all tests of the package share.
var world story.World

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "operations:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	log.SetLogger(logr.Discard()) // warnings of the API server are not what these tests are about
	options := cluster.Options{Name: fmt.Sprintf("alone-%d", os.Getpid()), Simulated: true, Nodes: cluster.NoNodes}
	if !cluster.Built(options, cluster.ControlPlane) {
		return m.Run(), nil // all tests are skipped
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := cluster.Start(ctx, options)
	if err != nil {
		return 1, fmt.Errorf("start the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, c.Down(context.WithoutCancel(ctx))) }()
	config := c.RESTConfig()
	config.QPS = -1
	simulation := rest.CopyConfig(config)
	simulation.UserAgent = simnodes.UserAgent
	_, err = simnodes.Start(ctx, simulation, simnodes.Options{
		Nodes: nodes, Images: behaviours(),
	})
	if err != nil {
		return 1, fmt.Errorf("simulate nodes: %w", err)
	}
	api, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return 1, fmt.Errorf("make a client: %w", err)
	}
	world = story.World{Cluster: c, Client: api}
	return m.Run(), nil
}

// badImage is an image that cannot be pulled.
const badImage = "app:bad"

// behaviours are those of images that do not just run.
func behaviours() map[string]simnodes.Image {
	return map[string]simnodes.Image{"app:done": {Exits: true}, badImage: {PullFails: true}}
}

// need skips the test where no control plane runs; where the variable CI is set, it fails the test.
func need(t *testing.T) {
	t.Helper()
	const missing = "the binaries are not built yet: run `go run ./test/cluster/cmd/cluster build`"
	switch {
	case world.Cluster != nil:
	case os.Getenv("CI") != "":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}

// built has the managers that were built, by work tree and feature: go build takes its time even for what is built.
var built = map[string]string{}

// fleet is the managers of several features.
type fleet map[string]*managers.Manager

// install installs the features of a work tree and starts their managers. At the end of the test all of it is removed but
// the definitions of kinds, which take the API server longest, and no manager may have logged the same error again and
// again.
func install(t *testing.T, root string, features ...string) fleet {
	t.Helper()
	t.Cleanup(func() { removeObjects(t) }) // the managers of the next test would go on with them
	f, folder := fleet{}, t.TempDir()
	arguments := []string{"--webhook-initialize-timeout=" + starts.String()}
	if root == "" { // releases before have no such flag
		arguments = append(arguments, "--webhook-lame-duck=0s") // nobody else would answer at their address
	}
	for _, feature := range features {
		m, err := managers.Install(t.Context(), managers.Options{
			Cluster: world.Cluster, Client: world.Client, Feature: feature, Root: root, Binary: built[root+" "+feature], Folder: folder,
			Arguments: arguments,
		})
		require.NoError(t, err)
		built[root+" "+feature] = m.Binary
		f[feature] = m
		t.Cleanup(func() { f.remove(t, feature) })
	}
	f.start(t, features...)
	return f
}

func (f fleet) remove(t *testing.T, feature string) {
	t.Helper()
	m := f[feature]
	stopped := m.Stop()
	logged, err := m.Errors()
	require.NoError(t, err)
	for what, e := range logged {
		assert.LessOrEqual(t, e.Times, fewErrors, "%s logs again and again: %s: %s", feature, what, e.Last)
	}
	ctx := context.WithoutCancel(t.Context())
	removed := m.Uninstall(ctx, func(o unstructured.Unstructured) bool { return !managers.IsDefinition(o) })
	// Who was killed holds its Lease, for which the next manager would wait.
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: testinstall.Namespace, Name: feature + "-manager"}}
	require.NoError(t, errors.Join(stopped, removed, client.IgnoreNotFound(world.Client.Delete(ctx, lease))))
}

// removeObjects deletes the objects of all our kinds.
func removeObjects(t *testing.T) {
	t.Helper()
	story.Eventually(t, "the end of all objects", func(ctx context.Context) error {
		var left error
		for _, kind := range definitions(t) {
			list := &unstructured.UnstructuredList{}
			group, _, _ := unstructured.NestedString(kind.Object, "spec", "group")
			name, _, _ := unstructured.NestedString(kind.Object, "spec", "names", "listKind")
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: name})
			left = errors.Join(left, world.Client.List(ctx, list))
			for i := range list.Items {
				o := &list.Items[i]
				left = errors.Join(left, fmt.Errorf("%s %s is there", o.GetKind(), o.GetName()), client.IgnoreNotFound(world.Client.Delete(ctx, o)))
			}
		}
		return left
	})
}

func (f fleet) start(t *testing.T, features ...string) {
	t.Helper()
	f.each(t, features, func(m *managers.Manager) error { return m.Start(t.Context()) })
}

func (f fleet) stop(t *testing.T, features ...string) {
	t.Helper()
	f.each(t, features, (*managers.Manager).Stop)
}

func (f fleet) kill(t *testing.T, features ...string) {
	t.Helper()
	f.each(t, features, (*managers.Manager).Kill)
}

// each does something with the managers of the features, all at the same time.
func (f fleet) each(t *testing.T, features []string, do func(*managers.Manager) error) {
	t.Helper()
	var all errgroup.Group
	for _, feature := range features {
		all.Go(func() error { return do(f[feature]) })
	}
	require.NoError(t, all.Wait())
}
