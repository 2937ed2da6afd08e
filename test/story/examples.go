package story

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Examples applies every YAML example of the page unchanged, in order. An example that begins with "# patch NAME" is a
// merge patch for that object of the kind; "# patch KIND/NAME" names another kind. All pods must be ready before the
// next example. A warning, or a patch without effect, fails the test.
func (w World) Examples(t *testing.T, namespace, page, kind string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	require.Len(t, blocks, strings.Count(string(text), "```yaml"))
	for _, block := range blocks {
		out, err := w.ApplyExample(t, namespace, kind, block[1])
		require.NoError(t, err, "%s\n%s", out, block[1])
		assert.NotContains(t, out, "Warning", block[1])
		assert.NotContains(t, out, "no change", block[1])
		w.podsReady(t, namespace)
	}
}

func (w World) podsReady(t *testing.T, namespace string) {
	t.Helper()
	Eventually(t, "the readiness of the example's pods", func(ctx context.Context) error {
		pods, err := w.pods(ctx, namespace)
		for i := range pods {
			err = errors.Join(err, Want(IsReady(&pods[i]), "pod %s is not ready", pods[i].Name))
		}
		return err
	})
}

// ApplyExample applies one example as Examples does and returns the output of kubectl.
func (w World) ApplyExample(t *testing.T, namespace, kind, example string) (out string, err error) {
	t.Helper()
	patched := regexp.MustCompile(`^# patch (\S+)\n`).FindStringSubmatch(example)
	if patched == nil {
		return w.Kubectl(t, example, "-n", namespace, "apply", "--validate=strict", "-f", "-")
	}
	target := patched[1]
	if !strings.Contains(target, "/") {
		target = kind + "/" + target
	}
	return w.Kubectl(t, example, "-n", namespace, "patch", target, "--type=merge", "--patch-file=/dev/stdin")
}

// NoPods prevents the creation of pods in the namespace, for stories about the API.
func (w World) NoPods(t *testing.T, namespace string) {
	t.Helper()
	require.NoError(t, w.Client.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods", Namespace: namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}))
}
