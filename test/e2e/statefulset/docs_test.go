package statefulset

import "testing"

// Every example of the page is applied unchanged.
func TestExamplesOfThePage(t *testing.T) {
	givenGrowingClaims(t) // one example of the page needs it
	namespace := world.Namespace(t)
	world.NoPods(t, namespace)
	world.Examples(t, namespace, "../../../docs/features/statefulset.md", "asts")
}
