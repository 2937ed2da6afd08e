package statefulset

import "testing"

// Every example of the page is taken as it stands.
func TestExamplesOfThePage(t *testing.T) {
	givenGrowingClaims(t) // the page says of one example that it needs it
	namespace := world.Namespace(t)
	world.NoPods(t, namespace)
	world.Examples(t, namespace, "../../../docs/features/statefulset.md", "asts")
}
