package daemonset

import "testing"

func TestExamplesOfThePage(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	world.NoPods(t, namespace)
	world.Examples(t, namespace, "../../../docs/features/daemonset.md", "ads")
}
