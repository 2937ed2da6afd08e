// Package simulate plays plans in random worlds, with all that goes wrong, and judges them.
//
// A seed, objects and a Planner go in; the end of the world, violations and a readable story come out. The world is that of
// core/simulation; this package adds what is for tests alone:
//
//	faults     stale views, lost events, refused writes, lost answers, crashes, foreign actors (Faults, Operator)
//	judges     of every write and of every plan (Limit, Check..., Judge)
//	walks      through random worlds, and the shortest story that fails in the same way (Walk, Course)
//
// It must never be imported by anything but tests.
package simulate
