package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/cli-runtime/pkg/genericiooptions"

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

func TestVersion(t *testing.T) {
	stdout, code := call(t, "flotilla", "version")
	assert.Equal(t, cli.Done, code)
	assert.NotEmpty(t, stdout)
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
