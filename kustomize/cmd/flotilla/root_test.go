package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// call runs the command as a user does.
func call(t *testing.T, program string, args ...string) (stdout string, code cli.Code) {
	t.Helper()
	var out, errOut bytes.Buffer
	root := newRoot(program, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut})
	root.SetArgs(args)
	code = cli.Run(t.Context(), root)
	return out.String() + errOut.String(), code
}

func TestHelpShowsWhatUsersType(t *testing.T) {
	stdout, code := call(t, "/usr/bin/flotilla", "--help")
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, stdout, "\n  flotilla [command]\n")
	assert.Contains(t, stdout, "--kubeconfig")

	stdout, code = call(t, "/usr/bin/kubectl-flotilla", "version", "--help")
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, stdout, "\n  kubectl flotilla version [flags]\n")
}

func TestUnknownCommandsAreMisuse(t *testing.T) {
	_, code := call(t, "flotilla", "nothing")
	assert.Equal(t, cli.Misused, code)
}

func TestUsersReadHowToNameThings(t *testing.T) {
	const one = "name one workload as KIND/NAME, such as cloneset/web"
	for text, want := range map[string]string{
		"explain":                    one,
		"rollout undo":               one,
		"rollout status clone web x": one,
		"drain":                      "name one node, such as node-1",
		"drain a b":                  "name one node, such as node-1",
	} {
		output, code := call(t, "flotilla", strings.Fields(text)...)
		assert.Equal(t, cli.Misused, code, text)
		assert.Contains(t, output, "error: "+want+"; see flotilla ", text)
	}
}

func TestHelpOfCommands(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"help", "rollout"}, {"help", "rollout", "status"}, {"help", "completion", "bash"}} {
		output, code := call(t, "flotilla", args...)
		assert.Equal(t, cli.Done, code, args)
		assert.Contains(t, output, "Usage:\n  "+strings.Join(append([]string{"flotilla"}, args[1:]...), " "), args)
	}
	for _, args := range [][]string{{"help", "nothing"}, {"help", "rollout", "nothing"}} {
		output, code := call(t, "flotilla", args...)
		assert.Equal(t, cli.Misused, code, args)
		assert.Contains(t, output, "unknown command \""+strings.Join(args[1:], " ")+"\"")
	}
}

// Libraries log what they meet; users read one error, and no line of a log.
func TestAClusterThatCannotBeReached(t *testing.T) {
	var logged []string
	klog.SetLogger(funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{}))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`), 0o600))

	for _, args := range [][]string{{"status"}, {"versions"}, {"doctor"}, {"install", "cloneset"}, {"uninstall", "cloneset"}} {
		output, code := call(t, "flotilla", append(args, "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir())...)
		assert.Equal(t, cli.Failed, code, args)
		assert.True(t, strings.HasPrefix(output, "error: read the version of the cluster: "), output)
		assert.Contains(t, output, "the cluster cannot be reached: check the address of the API server in the kubeconfig", args)
		assert.Equal(t, 1, strings.Count(output, "\n"), output)
	}
	assert.Empty(t, logged)
}

// A server that does not answer holds up nobody who interrupts, whatever is asked of it.
func TestAnInterruptEndsEveryCommand(t *testing.T) {
	for _, text := range []string{
		"status", "versions", "doctor", "install cloneset", "uninstall cloneset", "takeover cloneset", "takeover --finish", "explain cloneset/web",
		"rollout status cloneset/web", "rollout history cloneset/web", "rollout undo cloneset/web", "rollout watch cloneset/web", "drain node-1",
	} {
		t.Run(text, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
				interrupt()
				<-request.Context().Done()
			}))
			defer server.Close()
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			require.NoError(t, os.WriteFile(kubeconfig, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
				"clusters": [{"name": "c", "cluster": {"server": "`+server.URL+`"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}]}`), 0o600))
			var out bytes.Buffer
			root := newRoot("flotilla", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
			root.SetArgs(append(strings.Fields(text), "--kubeconfig", kubeconfig, "--cache-dir", t.TempDir(), "--request-timeout", "20s"))

			code := cli.Run(ctx, root)

			assert.Equal(t, cli.Interrupted, code, out.String())
			assert.Contains(t, out.String(), "error: interrupted: ")
			assert.NotContains(t, out.String(), "Timeout", "the request ended with the interrupt")
		})
	}
}

func TestVersion(t *testing.T) {
	stdout, code := call(t, "flotilla", "version")
	assert.Equal(t, cli.Done, code)
	assert.NotEmpty(t, stdout)

	asJSON, code := call(t, "flotilla", "version", "-o", "json")
	assert.Equal(t, cli.Done, code)
	assert.JSONEq(t, `{"version": "`+strings.TrimSpace(stdout)+`"}`, asJSON)
	asYAML, code := call(t, "flotilla", "version", "-o", "yaml")
	assert.Equal(t, cli.Done, code)
	assert.YAMLEq(t, asJSON, asYAML)
	assert.NotContains(t, asYAML, "{")
	refused, code := call(t, "flotilla", "version", "-o", "xml")
	assert.Equal(t, cli.Misused, code)
	assert.Equal(t, `error: invalid argument "xml" for "-o, --output" flag: use json or yaml, or omit it for text; see flotilla version --help`+"\n", refused)
}

func TestCompletion(t *testing.T) {
	stdout, code := call(t, "flotilla", "completion", "bash")
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, stdout, "__start_flotilla")

	stdout, code = call(t, "flotilla", "__complete", "install", "cloneset", "")
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, stdout, "\njobs\n")
	assert.NotContains(t, stdout, "cloneset\n", "what is named already is not offered again")
}

// Every page of help that the documentation names is there, each command once.
func TestCommandsAreThereOnce(t *testing.T) {
	count := map[string]int{}
	for _, command := range newRoot("flotilla", genericiooptions.IOStreams{}).Commands() {
		count[command.Name()]++
	}
	for _, name := range []string{"doctor", "explain", "install", "rollout", "status", "takeover", "uninstall", "version", "versions"} {
		assert.Equal(t, 1, count[name], name)
	}
}

// Each command that prints for programs has all formats.
func TestEveryOutputHasAllFormats(t *testing.T) {
	found := 0
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if flag := command.Flags().Lookup("output"); flag != nil {
			found++
			assert.IsType(t, new(cli.Output), flag.Value, command.CommandPath())
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(newRoot("flotilla", genericiooptions.IOStreams{}))
	assert.Greater(t, found, 8)
}

// As with kubectl, -v 6 shows each request. Without it, users see no log.
func TestRequestsAreLoggedOnDemand(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	t.Cleanup(func() { require.NoError(t, logAt(1, &bytes.Buffer{})) })

	output, _ := call(t, "flotilla", "status", "--server", server.URL, "--cache-dir", t.TempDir())
	assert.NotContains(t, output, "/version")
	output, _ = call(t, "flotilla", "status", "--server", server.URL, "--cache-dir", t.TempDir(), "-v", "6")
	assert.Regexp(t, `verb="GET" url="`+server.URL+`/version[^"]*" status="418`, output)
}
