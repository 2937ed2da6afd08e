// Package story holds what end-to-end tests are told with: a cluster with features on it, a namespace of their own,
// eventually, and a watch that checks every state that the API server shows.
//
// A suite declares one World and runs its stories through it:
//
//	var world story.World
//
//	func TestMain(m *testing.M) { world.Run(m, story.Suite{Features: []string{"cloneset"}}) }
//
// Tests wait on conditions and never on time. A story must not know any feature.
package story
