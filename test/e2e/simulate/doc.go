// Package simulate compares what flotilla simulate foretells with what then happens on a real cluster.
//
// Each story reads a forecast of an edit, makes the edit, and records the pods until the rollout ends. The pods that are
// updated in place and recreated, their order, the fewest available pods and the most pods at once must be those of the
// forecast. The times of both are logged: a busy machine stretches the real ones.
package simulate
