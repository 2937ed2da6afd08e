package apply_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	encoded, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, o.UnmarshalJSON(encoded))
	return o
}

func TestStagesComeInTheirOrder(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, kind := range []string{
		"ValidatingWebhookConfiguration", "Deployment", "ClusterRole", "ResourceQuota", "Namespace", "Service", "CustomResourceDefinition", "ServiceAccount",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	} {
		objects = append(objects, object(t, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: a}"))
	}
	var got []string
	for _, stage := range apply.Stages(objects) {
		line := stage.Name + ":"
		for _, o := range stage.Objects {
			line += " " + o.GetKind()
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{
		"namespace: ResourceQuota Namespace", "CRDs: CustomResourceDefinition", "RBAC: ClusterRole ServiceAccount ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
		"manager: Deployment Service", "webhooks: ValidatingWebhookConfiguration",
	}, got)
}

func TestReady(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, generation: 2}\nspec: {replicas: 2}\n"
	cases := []struct{ name, object, waitsFor string }{
		{"an old status", deployment + "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2}", "is not observed yet"},
		{"a pod to update", deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2}", "1 of 2 pods are updated"},
		{"an old pod", deployment + "status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3}", "1 old pods stay until new ones are available"},
		{"a pod that is not available", deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 1}", "1 of 2 pods are available"},
		{"a Deployment that is ready", deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}", ""},
		{"agents", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a}\nstatus: {desiredNumberScheduled: 3, currentNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 1}", "1 of 3 pods are available"},
		{"a CRD that is new", "apiVersion: v1\nkind: CustomResourceDefinition\nmetadata: {name: a}", "is not served yet"},
		{
			"a CRD that is not converted yet",
			"apiVersion: v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {conversion: {webhook: {clientConfig: {service: {}}}}}\n" +
				"status: {conditions: [{type: Established, status: 'True'}]}", "has no CA yet",
		},
		{"webhooks without a CA", "apiVersion: v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks: [{clientConfig: {caBundle: YQ==}}, {clientConfig: {}}]", "has no CA yet"},
		{"webhooks with a CA", "apiVersion: v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks: [{clientConfig: {caBundle: YQ==}}]", ""},
		{"what does nothing", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ready, waitsFor := apply.Ready(object(t, c.object))
			assert.Equal(t, c.waitsFor == "", ready)
			if !ready {
				assert.Equal(t, c.waitsFor, waitsFor)
			}
		})
	}
}

func TestStarted(t *testing.T) {
	pod := func(image, state string) unstructured.Unstructured {
		return *object(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: "+image+"}]}\n"+
			"status: {containerStatuses: [{state: "+state+"}]}")
	}
	cases := []struct {
		name     string
		pods     []unstructured.Unstructured
		waitsFor string
	}{
		{"no pod", nil, "has no pod yet"},
		{"an old pod", []unstructured.Unstructured{pod("a:v1", "{running: {}}")}, "has no pod yet"},
		{"an image that cannot be pulled", []unstructured.Unstructured{pod("a:v2", "{waiting: {reason: ErrImagePull, message: not found}}")}, "pod p: ErrImagePull not found"},
		{"one that runs", []unstructured.Unstructured{pod("a:v1", "{running: {}}"), pod("a:v2", "{running: {}}")}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			started, waitsFor := apply.Started(c.pods, "a:v2")
			assert.Equal(t, c.waitsFor == "", started)
			assert.Equal(t, c.waitsFor, waitsFor)
		})
	}
}

// What keeps the pods of a Deployment from being made stands in its condition alone: there is no pod to look at.
func TestPodsThatAreRefusedAreTold(t *testing.T) {
	const refused = `pods "cloneset-manager-1" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [system-cluster-critical]}]`
	deployment := object(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 1}")
	deployment.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Available", "status": "False"}, map[string]any{"type": "ReplicaFailure", "status": "True", "message": refused},
	}}

	ready, waitsFor := apply.Ready(deployment)

	assert.False(t, ready)
	assert.Equal(t, "0 of 1 pods are updated: "+refused, waitsFor)
}

// A namespace may have thousands of events, and this is asked again and again.
func TestOnlyEventsOfRefusedPodsAreListed(t *testing.T) {
	var asked url.Values
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "EventList", "items": [
			{"kind": "Event", "lastTimestamp": "2030-01-01T00:00:01Z", "message": "newest"}, {"kind": "Event", "lastTimestamp": "2030-01-01T00:00:00Z", "message": "older"}]}`)
	}))
	defer server.Close()
	flags := genericclioptions.NewConfigFlags(true)
	flags.APIServer = &server.URL
	cluster, err := apply.Connect(flags)
	require.NoError(t, err)

	cause, err := cluster.PodsRefused(t.Context(), object(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: a, name: b, uid: u-1}}"))

	require.NoError(t, err)
	assert.Equal(t, "newest", cause)
	assert.ElementsMatch(t, []string{"involvedObject.uid=u-1", "reason=FailedCreate"}, strings.Split(asked.Get("fieldSelector"), ","))
}

func TestDiff(t *testing.T) {
	before := object(t, "apiVersion: v1\nkind: Service\nmetadata: {name: a, resourceVersion: '1', labels: {a: b, c: d}}\nspec: {ports: [{port: 1}], type: x}\nstatus: {a: b}")
	after := object(t, "apiVersion: v1\nkind: Service\nmetadata: {name: a, resourceVersion: '2', labels: {a: e}}\nspec: {ports: [{port: 2}], type: x, more: [1]}")

	assert.Equal(t, []string{
		`~ metadata.labels.a: "b" -> "e"`, `- metadata.labels.c: "d"`, "+ spec.more: [1]", "~ spec.ports[0].port: 1 -> 2",
	}, apply.Diff(before, after))
	assert.Empty(t, apply.Diff(before, before))
}

// Long values are shortened for people only.
func TestDiffSeesTheEndOfLongValues(t *testing.T) {
	long := strings.Repeat("x", 300)
	before, after := object(t, "kind: Service\nspec: {a: "+long+", b: ["+long+"]}"), object(t, "kind: Service\nspec: {a: "+long+"y, b: ["+long+", 1]}")

	assert.Len(t, apply.Diff(before, after), 2)
}

func TestAwait(t *testing.T) {
	var told []string
	tell := func(line string) { told = append(told, line) }
	steps := []string{"a", "a", "b"}
	require.NoError(t, apply.Await(t.Context(), time.Hour, tell, func(context.Context) (bool, string, error) {
		if len(steps) == 0 {
			return true, "", nil
		}
		step := steps[0]
		steps = steps[1:]
		return false, step, nil
	}))
	assert.Equal(t, []string{"a", "b"}, told, "what is the same is told once")

	err := apply.Await(t.Context(), time.Millisecond, tell, func(context.Context) (bool, string, error) { return false, "its image", nil })
	require.EqualError(t, err, "not ready after 1ms: its image")

	err = apply.Await(t.Context(), time.Hour, tell, func(context.Context) (bool, string, error) { return false, "", errors.New("no right") })
	assert.ErrorContains(t, err, "no right")
}

// What goes by itself is waited for; what a user must mend ends the wait.
func TestErrorsOfAMomentAreWaitedFor(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	for _, c := range []struct {
		err  error
		goes bool
	}{
		{apierrors.NewTooManyRequests("busy", 1), true},
		{apierrors.NewInternalError(errors.New("etcdserver: leader changed")), true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{fmt.Errorf("list pods: %w", refused), true},
		{fmt.Errorf("list pods: %w", io.ErrUnexpectedEOF), true},
		{apierrors.NewUnauthorized("who"), false},
		{apierrors.NewForbidden(pods, "a", errors.New("no")), false},
		{errors.New("decode"), false},
	} {
		looks := 0
		err := apply.Await(t.Context(), time.Minute, func(string) {}, func(context.Context) (bool, string, error) {
			if looks++; looks == 1 {
				return false, "", c.err
			}
			return true, "", nil
		})
		if c.goes {
			require.NoError(t, err, "after %v", c.err)
		} else {
			require.ErrorIs(t, err, c.err)
		}
	}
}

func TestProgress(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	var out bytes.Buffer
	progress := &apply.Progress{Out: &out, Clock: clock}
	progress.Begin("cloneset CRDs")
	progress.Tell("is not served yet")
	clock.SetTime(time.Unix(2, 0))
	progress.End("1 of 1 objects changed")
	assert.Equal(t, "cloneset CRDs: 1 of 1 objects changed (2.0 s)\n", out.String(), "a file gets whole lines")

	out.Reset()
	progress.Live = true
	progress.Begin("cloneset CRDs")
	progress.Tell(strings.Repeat("long", 100))
	progress.End("done")
	for line := range strings.SplitSeq(out.String(), "\r\x1b[K") {
		assert.LessOrEqual(t, len(line), 90)
	}
	assert.True(t, strings.HasSuffix(out.String(), "\r\x1b[Kcloneset CRDs: done (0.0 s)\n"))
}
