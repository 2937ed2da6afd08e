package statefulset

import "testing"

// Every example of the pages is applied unchanged.
func TestExamplesOfThePages(t *testing.T) {
	givenGrowingClaims(t) // one example of volumes needs it
	namespace := world.Namespace(t)
	world.NoPods(t, namespace)
	for _, page := range []string{"features/statefulset", "guides/statefulset-volumes"} {
		world.Examples(t, namespace, "../../../docs/"+page+".md", "asts")
	}
}
