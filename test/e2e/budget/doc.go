// Package budget has the stories of PodUnavailableBudget on a real cluster: what it refuses, what it grants, and that no
// drain, rollout or restart of its operator takes an application below it.
package budget
