// Package simulate plays plans in random worlds, with all that goes wrong, and judges them.
//
// A seed, objects and a Planner go in; the end of the world, violations and a readable story come out. The world is that of
// core/simulation. Packages judges and retries watch it; this package adds:
//
//	faults     stale views, lost events, refused writes, lost answers, crashes, foreign actors (Faults, Operator)
//	actors     users who edit, controllers that answer hooks and pull images (Edit, AnswerHooks, PullImages, Actor)
//	walks      through random worlds, and the shortest story that fails in the same way (Walk)
//
// It must never be imported by anything but tests.
package simulate
