package takeover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// line is the connection of a command to the API server. It is lost before a write, and no request comes through after that.
type line struct {
	next http.RoundTripper
	cut  *cut
}

// cut is the moment at which the connection of a command is lost, or its user interrupts it.
type cut struct {
	// before reports whether a write is the first one that does not come through.
	before func(request *http.Request, body string) bool
	// interrupted ends the command at that moment. Otherwise the connection is lost, and the user waits for a while before
	// he ends the command.
	interrupted bool

	end  context.CancelFunc
	lock sync.Mutex
	lost bool
}

// patience is how long a user looks at a command that has lost its connection.
const patience = 2 * time.Second

func (l line) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := l.cut.meet(request); err != nil {
		return nil, err
	}
	return l.next.RoundTrip(request)
}

func (c *cut) meet(request *http.Request) error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.lost && writes(request) {
		if c.lost = c.before(request, bodyOf(request)); c.lost && !c.interrupted {
			time.AfterFunc(patience, c.end)
		}
	}
	if !c.lost {
		return nil
	}
	if c.interrupted {
		c.end()
		return context.Canceled
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: errors.New("no route to host")}
}

// writes reports whether a request changes an object.
func writes(request *http.Request) bool {
	return request.Method != http.MethodGet && !request.URL.Query().Has("dryRun") && !strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/")
}

func bodyOf(request *http.Request) string {
	if request.GetBody == nil {
		return ""
	}
	body, err := request.GetBody()
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(body)
	return string(text)
}

// afterWrites loses the connection when a number of writes has come through.
func afterWrites(n int) *cut {
	return &cut{before: func(*http.Request, string) bool { n--; return n < 0 }}
}

// inStep loses the connection when a step has begun, at its first write.
func inStep(step string) *cut {
	begun := false
	return &cut{before: func(_ *http.Request, body string) bool {
		was := begun
		begun = begun || strings.Contains(body, `"step":"`+step+`"`)
		return was
	}}
}

// callCut runs flotilla as an administrator over a connection that is lost.
func callCut(t *testing.T, c *cut, args ...string) (output string, code cli.Code) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	c.end = cancel
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return line{next: next, cut: c} })
		return config
	})
	cache := t.TempDir()
	flags.KubeConfig, flags.CacheDir = &clitest.Administrator, &cache
	var out bytes.Buffer
	root := &cobra.Command{Use: "flotilla"}
	root.SetOut(&out)
	root.SetErr(&out)
	for _, command := range commands() {
		root.AddCommand(command(flags, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}))
	}
	root.SetArgs(args)
	code = cli.Run(ctx, root)
	return out.String(), code
}

// recorded returns the step and the direction of the handover of spreads; both are empty if there is none.
func recorded(t *testing.T) (step, direction string) {
	t.Helper()
	list, err := clitest.Objects(t).Resource(configMaps).Namespace("flotilla-system").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=flotilla-takeover-spread"})
	require.NoError(t, err)
	if len(list.Items) == 0 {
		return "", ""
	}
	data, _, _ := unstructured.NestedStringMap(list.Items[0].Object, "data")
	return data["step"], data["direction"]
}

// through repeats a command, which gets one write further each time before it is cut off, until it ends. After each new step
// it calls the function.
func through(t *testing.T, known func(step, direction string), args ...string) {
	t.Helper()
	last := "none"
	for n := 0; ; n++ {
		require.Less(t, n, 200, "the command does not end")
		c := afterWrites(n)
		if n%2 == 1 {
			c.interrupted = true
		}
		output, code := callCut(t, c, args...)
		if !c.lost {
			require.Equal(t, cli.Done, code, output)
			return
		}
		step, direction := recorded(t)
		if c.interrupted {
			assert.Equal(t, cli.Interrupted, code, output)
		} else {
			assert.Contains(t, []cli.Code{cli.Failed, cli.Interrupted}, code, output)
		}
		assert.Contains(t, output, "run the command again", "after %d writes, in step %q", n, step)
		if step != last {
			last = step
			known(step, direction)
		}
	}
}

// tells checks that status and doctor name the step, the way on and the way back.
func tells(t *testing.T, trouble, help string) {
	t.Helper()
	output, code := call(t, clitest.Administrator, "status")
	assert.Equal(t, cli.NotSo, code)
	assert.Contains(t, output, trouble+"\n")
	output, _ = call(t, clitest.Administrator, "doctor")
	assert.Contains(t, output, help+"\n")
}

const (
	waysOver = "To continue: flotilla takeover spread. To go back: flotilla takeover spread --undo"
	waysBack = "To continue: flotilla takeover spread --undo. To take it over again: flotilla takeover spread"
)

// spreads are on a cluster with OpenKruise, whose manager restarts for a gate and has a list of further kinds: their takeover has
// all steps.
func spreads(t *testing.T) {
	t.Helper()
	manager(t)
	account(t)
	kind := oldKind(t, "1.9.0", "workloadspreads")
	listOfOld(t, furtherKinds)
	oldWebhooks(t, kind)
	kind.create(t, parsed(t, `
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: web}
spec: {targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, subsets: [{name: a, maxReplicas: 1}]}
status: {observedGeneration: 1}`))
}

// same checks that OpenKruise has all that it had.
func same(t *testing.T, before map[string]any) {
	t.Helper()
	after := whole(t)
	for name := range before {
		assert.Equal(t, before[name], after[name], name)
	}
	if before[copyOfList] == nil {
		assert.NotContains(t, after, copyOfList)
	}
}

// Wherever a takeover is cut off: its state is known, nothing of OpenKruise's has changed before its account is refused, and
// the same command goes on to the end.
func TestATakeoverThatIsCutOffGoesOn(t *testing.T) {
	clitest.NeedsServer(t)
	spreads(t)
	before := whole(t)

	var steps []string
	through(t, func(step, direction string) {
		steps = append(steps, step)
		switch step {
		case "":
			same(t, before)
			output, _ := call(t, clitest.Administrator, "status")
			assert.Contains(t, output, "OpenKruise manages its kinds: flotilla takeover spread\n")
			return
		case "start the operator", "record the changes":
			same(t, before)
		}
		assert.Equal(t, "over", direction)
		tells(t, "its takeover from OpenKruise was interrupted; last step: "+step, waysOver)
	}, "takeover", "spread", "--wait=false", "--settle=0", "--timeout=10m")

	assert.Equal(t, []string{
		"", "start the operator", "record the changes", "reject writes of the old manager", "turn its feature gates off",
		"remove its webhooks", "copy the list of further kinds", "install",
	}, steps)
	assert.Equal(t, []string{"--v=4", "--feature-gates=ImagePullJobGate=true,WorkloadSpread=false"}, argumentsOfManager(t))
	output, code := call(t, clitest.Administrator, "takeover", "spread", "--undo", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	same(t, before)
}

// The way back is cut off in each of its steps: the same command goes on, and the state is known.
func TestAWayBackThatIsCutOffGoesOn(t *testing.T) {
	clitest.NeedsServer(t)
	spreads(t)
	before := whole(t)
	output, code := call(t, clitest.Administrator, "takeover", "spread", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	undo := []string{"takeover", "spread", "--undo", "--wait=false", "--settle=0", "--timeout=10m"}

	for i, step := range []string{
		"store objects as before", "remove the operator", "remove the list of further kinds", "restore the CRDs", "restore the webhooks", "allow writes of the old manager",
		"turn its feature gates on",
	} {
		c := inStep(step)
		if i%2 == 1 {
			c.interrupted = true
		}
		output, _ := callCut(t, c, undo...)
		require.True(t, c.lost, output)
		assert.Contains(t, output, "run the command again")
		last, direction := recorded(t)
		assert.Equal(t, []string{step, "back"}, []string{last, direction})
		tells(t, "the return to OpenKruise was interrupted; last step: "+step, waysBack)
	}
	output, code = call(t, clitest.Administrator, undo...)

	require.Equal(t, cli.Done, code, output)
	same(t, before)
	step, _ := recorded(t)
	assert.Empty(t, step)
}

// Wherever the end of takeovers is cut off: no object and no CRD is lost, OpenKruise stays refused as long as its manager may
// run, the state is known, and the same command goes on to the end.
func TestAnEndOfTakeoversThatIsCutOffGoesOn(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	converter := clitest.NewConverter(t)
	old := oldManager(t)
	openKruise(t, old, "1.8.4")
	t.Cleanup(func() {
		withoutProtection(t, "cloneset", "spread")
		withoutCRD(t, "workloadspreads.apps.kruise.io")
		withoutOpenKruise(t)
	})
	manager(t)
	output, code := call(t, clitest.Administrator, "takeover", "cloneset", "spread", "--wait=false", "--settle=0", "--timeout=10m")
	t.Cleanup(func() {
		output, code := call(t, clitest.Administrator, "uninstall", "cloneset", "spread")
		assert.Equal(t, cli.Done, code, output)
	})
	require.Equal(t, cli.Done, code, output)
	withoutWebhooks(t)
	converter.Serve(t, "clonesets.apps.kruise.io")
	web, err := client.Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)

	var states []string
	for n := 0; ; n++ {
		require.Less(t, n, 200, "the command does not end")
		c := afterWrites(n)
		if n%2 == 1 {
			c.interrupted = true
		}
		output, code := callCut(t, c, "takeover", "--finish", "cloneset", "spread", "--settle=0", "--timeout=10m")
		if !c.lost {
			require.Equal(t, cli.Done, code, output)
			break
		}
		assert.Contains(t, output, "run the command again", "after %d writes", n)
		stored, err := client.Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, web.GetUID(), stored.GetUID())
		assert.Equal(t, nested(web, "spec", "template"), nested(stored, "spec", "template"))
		refusedWhileItMayRun(t)
		now := endings(t)
		if len(states) > 0 && states[len(states)-1] == state(now) {
			continue
		}
		states = append(states, state(now))
		tellsOfEnds(t, now)
		if strings.Contains(state(now), "remove OpenKruise's webhooks") {
			output, code := call(t, clitest.Administrator, "takeover", "spread", "--undo")
			assert.Equal(t, cli.Failed, code, output)
			assert.Contains(t, output, "OpenKruise is removed, or its removal has begun")
		}
	}

	assert.Equal(t, []string{
		"cloneset over, spread over",
		"cloneset final: store objects in Flotilla's version, spread over",
		"cloneset final, spread final",
		"cloneset final: remove OpenKruise's webhooks, spread final",
		"cloneset final: remove OpenKruise's webhooks, spread final: remove OpenKruise's webhooks",
		"cloneset final: remove OpenKruise's manager and node agent, spread final: remove OpenKruise's webhooks",
		"cloneset final: remove OpenKruise's manager and node agent, spread final: remove OpenKruise's manager and node agent",
		"cloneset final: remove the guard against OpenKruise from the CRDs, spread final: remove OpenKruise's manager and node agent",
		"cloneset final: remove the guard against OpenKruise from the CRDs, spread final: remove the guard against OpenKruise from the CRDs",
		"cloneset final: remove the policy against its ServiceAccount, spread final: remove the guard against OpenKruise from the CRDs",
		"cloneset final: remove the policy against its ServiceAccount, spread final: remove the policy against its ServiceAccount",
		"spread final: remove the policy against its ServiceAccount",
	}, states)
	assert.Equal(t, []string{"v1beta1"}, storedVersions(t))
	assert.Empty(t, endings(t))
}

// refusedWhileItMayRun checks that OpenKruise's account may not write what was taken over as long as a manager is there.
func refusedWhileItMayRun(t *testing.T) {
	t.Helper()
	list, err := clitest.Objects(t).Resource(deployments).Namespace("kruise-system").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	if len(list.Items) == 0 {
		return
	}
	for _, feature := range []string{"cloneset", "spread"} {
		_, err := clitest.Objects(t).Resource(policies).Get(t.Context(), "flotilla-takeover-"+feature, metav1.GetOptions{})
		require.NoError(t, err)
	}
}

// endings returns the data of the records of all handovers, by feature.
func endings(t *testing.T) map[string]map[string]string {
	t.Helper()
	list, err := clitest.Objects(t).Resource(configMaps).Namespace("flotilla-system").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=flotilla"})
	require.NoError(t, err)
	found := map[string]map[string]string{}
	for _, record := range list.Items {
		if feature, is := strings.CutPrefix(record.GetName(), "flotilla-takeover-"); is {
			found[feature], _, _ = unstructured.NestedStringMap(record.Object, "data")
		}
	}
	return found
}

// state writes the directions and steps of all handovers in a line.
func state(handovers map[string]map[string]string) string {
	var all []string
	for _, feature := range slices.Sorted(maps.Keys(handovers)) {
		data := handovers[feature]
		all = append(all, strings.TrimSuffix(feature+" "+data["direction"]+": "+data["step"], ": "))
	}
	return strings.Join(all, ", ")
}

// tellsOfEnds checks that status and doctor name each step that has not ended, and the command that goes on.
func tellsOfEnds(t *testing.T, handovers map[string]map[string]string) {
	t.Helper()
	status, _ := call(t, clitest.Administrator, "status", "--output=json")
	doctor, _ := call(t, clitest.Administrator, "doctor")
	for feature, data := range handovers {
		switch step := data["step"]; {
		case step != "":
			assert.Contains(t, status, "the end of its takeover from OpenKruise was interrupted; last step: "+step+"\"")
			assert.Contains(t, doctor, "To continue: flotilla takeover --finish "+feature+"\n")
		case data["direction"] == "final":
			assert.Contains(t, status, "takeover from OpenKruise is final; to remove the rest of OpenKruise: flotilla takeover --finish\"")
		default:
			assert.Contains(t, status, "taken over from OpenKruise; to go back: flotilla takeover "+feature+" --undo; to finish: flotilla takeover --finish "+feature+"\"")
		}
	}
}

// nested returns a field of an object.
func nested(object *unstructured.Unstructured, fields ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	return value
}

// withoutProtection deletes the policies by which the CRDs of features cannot be deleted.
func withoutProtection(t *testing.T, features ...string) {
	t.Helper()
	for _, resource := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies"} {
		for _, feature := range features {
			err := clitest.Objects(t).Resource(policies.GroupVersion().WithResource(resource)).
				Delete(context.WithoutCancel(t.Context()), "flotilla-takeover-"+feature+"-crds", metav1.DeleteOptions{})
			assert.True(t, err == nil || apierrors.IsNotFound(err), err)
		}
	}
}
