// Package jobs tells the stories of what runs to completion, on real nodes: sidecars of finished pods, images of
// lists, pods on every node, and jobs by a schedule.
package jobs
