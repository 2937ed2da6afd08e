package story

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Patience is how long a story waits for what must happen in the end.
	Patience = 2 * time.Minute

	interval = 100 * time.Millisecond
)

// World is a cluster as a test sees it.
type World struct {
	// Client reads from and writes to the API server, with a watch.
	Client client.WithWatch
	// KubectlPath and Kubeconfig are how a user reaches it.
	KubectlPath, Kubeconfig string
}

// Namespace makes a namespace for the test and deletes it at its end, without waiting for that.
func (w World) Namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	require.NoError(t, w.Client.Create(t.Context(), ns))
	t.Cleanup(func() {
		if t.Failed() {
			w.dump(t, ns.Name)
		}
		_ = w.Client.Delete(context.WithoutCancel(t.Context()), ns)
	})
	return ns.Name
}

// dump logs what a failed test leaves, before its namespace goes.
func (w World) dump(t *testing.T, namespace string) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), w.KubectlPath, "--kubeconfig", w.Kubeconfig, "-n", namespace, "get", "clonesets,pods,events", "-o", "wide")
	out, _ := command.CombinedOutput()
	t.Logf("what %s leaves in %s:\n%s", t.Name(), namespace, out)
}

// Kubectl runs kubectl as a user would and returns what it prints. Standard input is the text.
func (w World) Kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), w.KubectlPath, append([]string{"--kubeconfig", w.Kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	return string(out), err
}

// Eventually waits until the check returns nil, and fails the test with its last error.
func Eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for {
		last := check(ctx)
		if last == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not come about within %s: %v", what, Patience, last)
		case <-time.After(interval):
		}
	}
}

// Want is nil when the condition holds and otherwise an error with the text.
func Want(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}
