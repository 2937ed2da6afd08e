// Package rollout turns the numbers and percentages of update strategies into numbers of pods.
//
// An intstr.IntOrString and the wanted replicas go in, a number of pods comes out. One parser serves validation and
// plans alike, so that admission and plans agree on each value; it calculates with exact fractions, never with floating
// point.
package rollout
