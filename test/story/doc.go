// Package story has the means of end-to-end tests: a cluster with features, a namespace for each test, waits for
// conditions, and a watch that checks every state that the API server shows.
//
// A suite declares one World and runs its stories through it:
//
//	var world story.World
//
//	func TestMain(m *testing.M) { world.Run(m, story.Suite{Features: []string{"cloneset"}}) }
//
// Tests wait on conditions and never on time. A story must not know any feature.
package story
