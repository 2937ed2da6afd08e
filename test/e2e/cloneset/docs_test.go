package cloneset

import (
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

const page = "../../../docs/features/cloneset.md"

// Every example of the page is taken as it stands, in the page's order: manifests are applied, and
// what begins with "# patch NAME" is a merge patch of that CloneSet.
func TestExamplesOfThePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, blocks)
	require.Len(t, blocks, strings.Count(string(text), "```yaml"))
	namespace := world.Namespace(t)
	givenNoRoomForPods(t, namespace)
	for _, block := range blocks {
		out, err := applyExample(t, namespace, block[1])
		require.NoError(t, err, "%s\n%s", out, block[1])
		assert.NotContains(t, out, "Warning", block[1])
		assert.NotContains(t, out, "no change", block[1])
	}
	out, err := applyExample(t, namespace, "# patch web\nspec:\n  misspelt: true\n")
	require.NoError(t, err, out)
	assert.Contains(t, out, `Warning: unknown field "spec.misspelt"`, "a patch with a mistake is noticed")
}

func applyExample(t *testing.T, namespace, example string) (out string, err error) {
	t.Helper()
	if name := regexp.MustCompile(`^# patch (\S+)\n`).FindStringSubmatch(example); name != nil {
		return world.Kubectl(t, example, "-n", namespace, "patch", "clone", name[1], "--type=merge", "--patch-file=/dev/stdin")
	}
	return world.Kubectl(t, example, "-n", namespace, "apply", "--validate=strict", "-f", "-")
}

// givenNoRoomForPods lets no pods be made in the namespace: the examples are about the API.
func givenNoRoomForPods(t *testing.T, namespace string) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods", Namespace: namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}))
}
