// Package plan has the rules of the controller of WorkloadSpreads, as pure functions: a snapshot goes in, the patches and
// deletions of pods and the next status come out (Compute). It counts places by the rules of package subsets.
package plan
