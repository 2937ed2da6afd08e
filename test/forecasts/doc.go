// Package forecasts compares rollouts on a real cluster with the forecasts of flotilla simulate.
//
// Edit reads the forecast of an edit of a workload, makes the edit, and records the pods until the rollout ends. The pods that
// are updated in place and recreated, their order, the fewest available pods and the most pods at once must be those of the
// forecast. Both times are logged: a busy machine stretches the real one.
package forecasts
