package config

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const here, there = "node-a", "node-b"

// world is two nodes, on each an agent and a pod with a request, and the shipped permissions and policies.
type world struct {
	admin     client.Client
	namespace string
}

func givenWorld(t *testing.T) world {
	t.Helper()
	w := world{admin: env.Client(t), namespace: env.Namespace(t)}
	env.Share(t, namespace("flotilla-system"))
	env.Install(t, Files, "secrets/*.yaml", "rbac/*.yaml", "policy/*.yaml")
	for _, node := range []string{here, there} {
		pod := podOn(node, w.namespace, "on-"+node)
		request := &v1beta1.ContainerRecreateRequest{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: "on-" + node,
				Labels: map[string]string{v1beta1.NodeNameLabel: node, v1beta1.ActiveLabel: "true"},
			},
			Spec: v1beta1.ContainerRecreateRequestSpec{PodName: pod.Name, Containers: []v1beta1.ContainerToRecreate{{Name: "main"}}},
		}
		agent := podOn(node, "flotilla-system", "agent-"+node)
		agent.Spec.ServiceAccountName = "daemon-agent"
		env.Share(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node}}, pod, request, agent)
	}
	return w
}

// agent returns a client with a token like that of the agent's pod on the node; without a node the token is bound to no
// pod.
func (w world) agent(t *testing.T, node string) client.WithWatch {
	t.Helper()
	asked := &authenticationv1.TokenRequest{}
	if node != "" {
		asked.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "agent-" + node}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flotilla-system", Name: "daemon-agent"}}
	require.NoError(t, w.admin.SubResource("token").Create(t.Context(), account, asked))
	config := rest.AnonymousClientConfig(env.Config)
	config.BearerToken, config.QPS = asked.Status.Token, -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: env.Scheme, Mapper: w.admin.RESTMapper()})
	require.NoError(t, err)
	return c
}

// enforced waits until the API server judges by the policies.
func (w world) enforced(t *testing.T) {
	t.Helper()
	agent := w.agent(t, here)
	for _, attempt := range foreign(w) {
		await.Until(t, func(collect *assert.CollectT) {
			assert.True(collect, apierrors.IsInvalid(attempt.do(t.Context(), agent)) || apierrors.IsForbidden(attempt.do(t.Context(), agent)))
		}, attempt.name)
	}
}

// write is one request under the name of a client.
type write func(context.Context, client.Client) error

// attempt is a write of an agent.
type attempt struct {
	name string
	do   write
	want string // in the refusal; empty lets the write pass
}

func patchStatus(o client.Object, body string) write {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(body)))
	}
}

func nodeImage(node string) client.Object {
	return &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: node}}
}

func (w world) request(node string) client.Object {
	return &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "on-" + node}}
}

func (w world) pod(node string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "on-" + node}}
}

// tellOf is an event of the own node with another reason or reporter.
func (w world) tellOf(reason, controller string) write {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "told-"}, EventTime: metav1.NowMicro(),
			ReportingController: controller, ReportingInstance: here, Action: "Pull", Reason: reason, Type: corev1.EventTypeNormal,
			Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: "on-" + here},
		})
	}
}

func (w world) tell(node string) write {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "told-"}, EventTime: metav1.NowMicro(),
			ReportingController: "kruise-daemon", ReportingInstance: node, Action: "Pull", Reason: "PullImageSucceed", Type: corev1.EventTypeNormal,
			Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: w.namespace, Name: "on-" + node},
		})
	}
}

// moved returns a client with the name of an agent that was installed into another namespace.
func (w world) moved(t *testing.T) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:platform:daemon-agent", Groups: []string{"system:masters"},
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {here}},
	}
	c, err := client.New(config, client.Options{Scheme: env.Scheme, Mapper: w.admin.RESTMapper()})
	require.NoError(t, err)
	return c
}

// An agent in another namespace is bound to its node, too.
func TestAgentsAreBoundInAnyNamespace(t *testing.T) {
	w := givenWorld(t)
	w.enforced(t)
	agent := w.moved(t)
	for _, attempt := range foreign(w) {
		require.ErrorContains(t, attempt.do(t.Context(), agent), attempt.want, attempt.name)
	}
	for _, attempt := range own(w) {
		require.NoError(t, attempt.do(t.Context(), agent), attempt.name)
	}
}

const (
	meta      = `{"metadata":{"annotations":{"apps.kruise.io/runtime-containers-meta":"{}"}}}`
	pullState = `{"status":{"desired":1,"pulling":1}}`
	working   = `{"status":{"phase":"Recreating","containerRecreateStates":[{"name":"main","phase":"Recreating","isKilled":true}]}}`
)

// own returns the writes of an agent for its own node.
func own(w world) []attempt {
	return []attempt{
		{"report about images", patchStatus(nodeImage(here), pullState), ""},
		{"work off a request", patchStatus(w.request(here), working), ""},
		{"write the annotation of a pod", patchStatus(w.pod(here), meta), ""},
		{"take the annotation away", patchStatus(w.pod(here), `{"metadata":{"annotations":{"apps.kruise.io/runtime-containers-meta":null}}}`), ""},
		{"tell an event", w.tell(here), ""},
	}
}

// foreign returns the same writes for another node.
func foreign(w world) []attempt {
	const who = `the agent of node "node-a" may not `
	return []attempt{
		{"report about images of another node", patchStatus(nodeImage(there), pullState), who + "report about the images of node node-b"},
		{"work off a request of another node", patchStatus(w.request(there), working), who + "work off requests for pods of another node"},
		{"write the annotation of a pod of another node", patchStatus(w.pod(there), meta), who + "write to pods of another node"},
		{"tell an event of another node", w.tell(there), who + "tell events of another node"},
	}
}

// beyond returns writes for the own node that are none of the agent's business.
func beyond(w world) []attempt {
	status := func(body string) write { return patchStatus(w.pod(here), body) }
	const alone = "an agent may write no annotation but"
	return []attempt{
		{"add another annotation", status(`{"metadata":{"annotations":{"other":"1"}}}`), alone},
		{"change an annotation", status(`{"metadata":{"annotations":{"mine":"2"}}}`), alone},
		{"remove an annotation", status(`{"metadata":{"annotations":{"mine":null}}}`), alone},
		{"remove all annotations", status(`{"metadata":{"annotations":null}}`), alone},
		{"change a label", status(`{"metadata":{"labels":{"app":"other"}}}`), "labels or finalizers"},
		{"add a finalizer", status(`{"metadata":{"finalizers":["example.com/stay"]}}`), "labels or finalizers"},
		{"change a condition", status(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), "may not change the status"},
		{"tell an event of its own making", w.tellOf("Evicted", "kruise-daemon"), "of nothing else"},
		{"tell an event as somebody else", w.tellOf("Killing", "kubelet"), "of nothing else"},
		{"change the phase", status(`{"status":{"phase":"Failed"}}`), "may not change the status"},
	}
}

// denied returns writes that the agent has no permission for at all.
func denied(w world) []attempt {
	main := func(o client.Object, body string) write {
		return func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(body)))
		}
	}
	remove := func(o client.Object) write {
		return func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, o.DeepCopyObject().(client.Object))
		}
	}
	return []attempt{
		{"ask for images", main(nodeImage(here), `{"spec":{"images":{"nginx":{"tags":[{"tag":"1"}]}}}}`), "cannot patch resource"},
		{"remove a NodeImage", remove(nodeImage(here)), "cannot delete resource"},
		{"relabel a request", main(w.request(here), `{"metadata":{"labels":{"crr.apps.kruise.io/node-name":"node-b"}}}`), "cannot patch resource"},
		{"remove a request", remove(w.request(here)), "cannot delete resource"},
		{"ask for a restart", func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &v1beta1.ContainerRecreateRequest{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine"},
				Spec:       v1beta1.ContainerRecreateRequestSpec{PodName: "on-" + here, Containers: []v1beta1.ContainerToRecreate{{Name: "main"}}},
			})
		}, "cannot create resource"},
		{"change a pod", main(w.pod(here), meta), "cannot patch resource"},
		{"remove a pod", remove(w.pod(here)), "cannot delete resource"},
		{"make a token", func(ctx context.Context, c client.Client) error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flotilla-system", Name: "daemon-manager"}}
			return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}, "cannot create resource"},
	}
}

// An agent writes what concerns its own node. Whoever takes its token can harm no other node with it.
func TestAgentsWriteForTheirOwnNodeOnly(t *testing.T) {
	env.Need(t)
	w := givenWorld(t)
	w.enforced(t)
	agent := w.agent(t, here)
	for _, attempts := range [][]attempt{own(w), foreign(w), beyond(w), denied(w)} {
		for _, a := range attempts {
			t.Run(a.name, func(t *testing.T) {
				err := a.do(t.Context(), agent)
				if a.want == "" {
					require.NoError(t, err)
					return
				}
				assert.ErrorContains(t, err, a.want)
			})
		}
	}
	t.Run("the policies are about agents alone", func(t *testing.T) {
		for _, a := range append(foreign(w), beyond(w)[:1]...) {
			assert.NoError(t, a.do(t.Context(), w.admin), a.name)
		}
	})
}

// A token that is bound to no pod names no node.
func TestATokenWithoutANodeWritesNothing(t *testing.T) {
	env.Need(t)
	w := givenWorld(t)
	w.enforced(t)
	loose := w.agent(t, "")
	for _, a := range append(own(w)[:3], own(w)[4]) {
		assert.ErrorContains(t, a.do(t.Context(), loose), `the agent of node "" may not`, a.name)
	}
}

// CVE-2023-30617: root on one node meant all secrets of the cluster.
func TestAgentsReadPullSecretsByNameOnly(t *testing.T) {
	env.Need(t)
	w := givenWorld(t)
	agent := w.agent(t, here)
	secret := func(namespace string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "registry"}}
	}
	env.Share(t, secret(v1beta1.DefaultConfigNamespace), secret(w.namespace), secret("flotilla-system"), secret("kube-system"))

	config := secret(v1beta1.DefaultConfigNamespace)
	require.NoError(t, agent.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	for _, namespace := range []string{w.namespace, "flotilla-system", "kube-system"} {
		other := secret(namespace)
		assert.True(t, apierrors.IsForbidden(agent.Get(t.Context(), client.ObjectKeyFromObject(other), other)), namespace)
	}
	for _, namespace := range []string{"", w.namespace, v1beta1.DefaultConfigNamespace, "flotilla-system"} {
		err := agent.List(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace))
		assert.True(t, apierrors.IsForbidden(err), "list in %q: %v", namespace, err)
		_, err = agent.Watch(t.Context(), &corev1.SecretList{}, client.InNamespace(namespace))
		assert.True(t, apierrors.IsForbidden(err), "watch in %q: %v", namespace, err)
	}
	for name, write := range map[string]func() error{
		"create": func() error {
			mine := secret(v1beta1.DefaultConfigNamespace)
			mine.Name = "mine"
			return agent.Create(t.Context(), mine)
		},
		"update": func() error { return agent.Update(t.Context(), config) },
		"delete": func() error { return agent.Delete(t.Context(), config) },
	} {
		assert.True(t, apierrors.IsForbidden(write()), name)
	}
}
