package takeover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	// interrupt ends the command at that moment; nil loses the connection.
	interrupt func()

	lock sync.Mutex
	lost bool
}

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
		c.lost = c.before(request, bodyOf(request))
	}
	if !c.lost {
		return nil
	}
	if c.interrupt != nil {
		c.interrupt()
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
	if c.interrupt != nil {
		c.interrupt = cancel
	}
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
			c.interrupt = func() {}
		}
		output, code := callCut(t, c, args...)
		if !c.lost {
			require.Equal(t, cli.Done, code, output)
			return
		}
		step, direction := recorded(t)
		if n%2 == 1 {
			assert.Equal(t, cli.Interrupted, code, output)
		} else {
			assert.Equal(t, cli.Failed, code, output)
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
func spreads(t *testing.T) kindOfOld {
	t.Helper()
	manager(t)
	account(t)
	kind := oldKind(t, "1.9.0", "workloadspreads")
	oldWebhooks(t, kind)
	kind.create(t, parsed(t, `
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: web}
spec: {targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}, subsets: [{name: a, maxReplicas: 1}]}
status: {observedGeneration: 1}`))
	return kind
}

// same checks that OpenKruise has all that it had.
func same(t *testing.T, before map[string]any) {
	t.Helper()
	after := whole(t)
	for name := range before {
		assert.Equal(t, before[name], after[name], name)
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
	}, "takeover", "spread", "--wait=false", "--settle=0", "--timeout=1m")

	assert.Equal(t, []string{
		"", "start the operator", "record the changes", "reject writes of the old manager", "turn its feature gates off",
		"remove its webhooks", "copy the list of further kinds", "install",
	}, steps)
	assert.Equal(t, []string{"--v=4", "--feature-gates=ImagePullJobGate=true,WorkloadSpread=false"}, argumentsOfManager(t))
	output, code := call(t, clitest.Administrator, "takeover", "spread", "--undo", "--wait=false", "--settle=0", "--timeout=1m")
	require.Equal(t, cli.Done, code, output)
	same(t, before)
}

// The way back is cut off in each of its steps: the same command goes on, and the state is known.
func TestAWayBackThatIsCutOffGoesOn(t *testing.T) {
	clitest.NeedsServer(t)
	spreads(t)
	before := whole(t)
	output, code := call(t, clitest.Administrator, "takeover", "spread", "--wait=false", "--settle=0", "--timeout=1m")
	require.Equal(t, cli.Done, code, output)
	undo := []string{"takeover", "spread", "--undo", "--wait=false", "--settle=0", "--timeout=1m"}

	for i, step := range []string{
		"store objects as before", "remove the operator", "restore the CRDs", "restore the webhooks", "allow writes of the old manager",
		"turn its feature gates on",
	} {
		c := inStep(step)
		if i%2 == 1 {
			c.interrupt = func() {}
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
