// Package condition makes the conditions of a status. It is pure: plans use it.
//
// A list of conditions and what the pass found go in, the next list comes out: conditions that say
// the same keep their times, those of other writers stay, and Ready, Reconciling and Stalled follow
// from one function, so that kubectl wait, Helm, Flux and Argo CD understand every kind. It must
// never read a clock.
package condition
