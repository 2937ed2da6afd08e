package cloneset

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
)

// What the page of metrics says of every operator and of the libraries is served by this one.
func TestMetricsOfThePageAreServed(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1)
	givenSet(t, set)
	pods := &corev1.PodList{}
	require.NoError(t, world.Client.List(t.Context(), pods, client.InNamespace(install.Namespace),
		client.MatchingLabels{"app.kubernetes.io/name": "cloneset-manager"}))
	served := ""
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			continue
		}
		out, err := world.Kubectl(t, "", "get", "--raw", "/api/v1/namespaces/"+install.Namespace+"/pods/"+pods.Items[i].Name+":8080/proxy/metrics")
		require.NoError(t, err, out)
		served += out
	}
	page, err := os.ReadFile("../../../docs/metrics.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` ").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		// The agent's are its own; nothing was written about certificates since this pod started.
		if name := row[1]; !strings.HasPrefix(name, "kruise_agent_") && name != "flotilla_webhook_certificate_writes_total" {
			assert.Contains(t, served, "\n"+name, name)
		}
	}
}
