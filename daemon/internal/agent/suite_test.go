package agent_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:   []string{"../../config/crd/nodeimages.yaml", "../../config/crd/containerrecreaterequests.yaml"},
		Scheme: testenv.Scheme(v1beta1.AddToScheme),
	})
}

// node is a node of a test: an agent, a runtime, and the API server that all tests share.
type node struct {
	t       *testing.T
	name    string
	client  client.Client
	folder  string
	runtime *simulate.Runtime
	options agent.Options
	send    faults.Send // how the agent's requests are made
	stop    func()      // ends the agent
}

// givenNode runs an agent beside a runtime until the end of the test.
func givenNode(t *testing.T, change ...func(*agent.Options)) *node {
	t.Helper()
	n := givenNodeWithoutAgent(t, change...)
	n.startBesideRuntime()
	return n
}

// givenRefusedNode returns givenNode with an agent that some writes are refused to.
func givenRefusedNode(t *testing.T, f *faults.Refusing) *node {
	t.Helper()
	n := givenNodeWithoutAgent(t)
	n.send = f.Send
	n.startBesideRuntime()
	return n
}

func (n *node) startBesideRuntime() {
	n.t.Helper()
	n.runtime = simulate.NewRuntime(n.t, "containerd", filepath.Join(n.folder, "containerd", "containerd.sock"))
	n.start()
}

func givenNodeWithoutAgent(t *testing.T, change ...func(*agent.Options)) *node {
	t.Helper()
	env.Need(t)
	n := &node{t: t, client: env.Client(t), folder: simulate.Folder(t)}
	n.name = env.Namespace(t) // as good a name as any, and no other test has it
	n.options = agent.Options{
		Node: n.name, ConfigNamespace: "config-" + n.name, Addr: freeAddress(t), SocketRoot: n.folder,
		PluginConfigFile: filepath.Join(n.folder, "none"), MaxWorkersForPullImage: -1,
		Random: func() float64 { return 0 }, FeatureGates: features.Defaults(featuregates.All()...), Log: logr.Discard(),
	}
	for _, f := range change {
		f(&n.options)
	}
	return n
}

// start runs the agent until the end of the test or until it is stopped.
func (n *node) start() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	ended := make(chan error, 1)
	config := env.ConfigAs(n.t, "administrator")
	if n.send != nil {
		config = faults.Wrapped(config, n.send)
	}
	go func() { ended <- agent.Run(ctx, n.options, config) }()
	stopped := false
	n.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			assert.NoError(n.t, <-ended)
		}
	}
	n.t.Cleanup(n.stop)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// get asks the agent itself.
func (n *node) get(path string) (int, string) {
	response, err := http.Get("http://" + n.options.Addr + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(n.t, err)
	return response.StatusCode, string(body)
}

func (n *node) eventuallyReady() {
	n.t.Helper()
	await.Until(n.t, func(c *assert.CollectT) {
		code, body := n.get("/readyz")
		assert.Equal(c, http.StatusOK, code, body)
	})
}

// wantImages makes or changes the NodeImage.
func (n *node) wantImages(images map[string]v1beta1.ImageSpec) {
	n.t.Helper()
	image := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	if err := n.client.Get(n.t.Context(), client.ObjectKeyFromObject(image), image); err == nil {
		base := image.DeepCopy()
		image.Spec.Images = images
		require.NoError(n.t, n.client.Patch(n.t.Context(), image, client.MergeFrom(base)))
		return
	}
	image.Spec.Images = images
	require.NoError(n.t, n.client.Create(n.t.Context(), image))
}

func (n *node) status() v1beta1.NodeImageStatus {
	n.t.Helper()
	image := &v1beta1.NodeImage{}
	require.NoError(n.t, n.client.Get(n.t.Context(), client.ObjectKey{Name: n.name}, image))
	return image.Status
}

// eventually waits until the status is as wanted.
func (n *node) eventually(want func(c *assert.CollectT, s v1beta1.NodeImageStatus)) v1beta1.NodeImageStatus {
	n.t.Helper()
	var last v1beta1.NodeImageStatus
	await.Until(n.t, func(c *assert.CollectT) {
		last = n.status()
		want(c, last)
	})
	return last
}

func (n *node) eventuallyPhases(want map[string]v1beta1.ImagePullPhase) v1beta1.NodeImageStatus {
	n.t.Helper()
	return n.eventually(func(c *assert.CollectT, s v1beta1.NodeImageStatus) {
		got := map[string]v1beta1.ImagePullPhase{}
		for name, image := range s.ImageStatuses {
			for _, tag := range image.Tags {
				got[name+":"+tag.Tag] = tag.Phase
			}
		}
		assert.Equal(c, want, got)
	})
}

// eventuallyEvent waits for an event about an object.
func (n *node) eventuallyEvent(name, reason string) eventsv1.Event {
	n.t.Helper()
	var found eventsv1.Event
	await.Until(n.t, func(c *assert.CollectT) {
		var list eventsv1.EventList
		require.NoError(c, n.client.List(n.t.Context(), &list))
		for _, e := range list.Items {
			mine := e.Regarding.Namespace == "" || e.Regarding.Namespace == n.name
			if mine && e.Regarding.Name == name && e.Reason == reason {
				found = e
				return
			}
		}
		assert.Fail(c, "no event "+reason+" on "+name)
	})
	return found
}

func tag(name string, version int64, change ...func(*v1beta1.ImageTagSpec)) v1beta1.ImageTagSpec {
	t := v1beta1.ImageTagSpec{Tag: name, Version: version, CreatedAt: new(metav1.Now()), PullPolicy: &v1beta1.ImageTagPullPolicy{
		TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(0)), TTLSecondsAfterFinished: new(int32(600)),
	}}
	for _, f := range change {
		f(&t)
	}
	return t
}

func tags(all ...v1beta1.ImageTagSpec) v1beta1.ImageSpec { return v1beta1.ImageSpec{Tags: all} }

// pullSecret makes a docker configuration in the namespace of the agent's secrets.
func (n *node) pullSecret(name, auths string) v1beta1.SecretReference {
	n.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.options.ConfigNamespace}}
	env.Share(n.t, namespace)
	require.NoError(n.t, n.client.Create(n.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":` + auths + `}`},
	}))
	return v1beta1.SecretReference{Namespace: namespace.Name, Name: name}
}
