// Package progress judges how far the rollout of a workload is: from its status alone, in the same words for each command.
package progress
