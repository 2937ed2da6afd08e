package memory

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"
)

// The pauses before failed pods of one node are replaced: none for the first, then from the shortest to the longest,
// each twice the one before. A node without failures for twice the longest begins anew.
const (
	shortestPause = time.Second
	longestPause  = 15 * time.Minute
)

// failure is how often pods failed on a node.
type failure struct {
	pods  []types.UID // may be replaced
	pause time.Duration
	since time.Time
}

// retryFailedAt returns for each node with a failed pod that has to wait when it may be replaced.
func (s *knownSet) retryFailedAt(pods []*corev1.Pod, now time.Time) map[string]time.Time {
	failed := map[string][]types.UID{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil {
			node := eligibility.NodeOf(pod)
			failed[node] = append(failed[node], pod.UID)
		}
	}
	wait := map[string]time.Time{}
	for node, uids := range failed {
		if until := s.failedOn(node, uids, now); until.After(now) {
			wait[node] = until
		}
	}
	for node, f := range s.failures {
		if now.Sub(f.since) > 2*longestPause {
			delete(s.failures, node)
		}
	}
	return wait
}

// failedOn returns until when failed pods of a node wait.
func (s *knownSet) failedOn(node string, pods []types.UID, now time.Time) time.Time {
	f := s.failures[node]
	if f == nil {
		f = &failure{}
		s.failures[node] = f
	}
	if !slices.ContainsFunc(pods, func(uid types.UID) bool { return !slices.Contains(f.pods, uid) }) {
		return now
	}
	if until := f.since.Add(f.pause); until.After(now) {
		return until
	}
	f.pods, f.since, f.pause = pods, now, min(max(2*f.pause, shortestPause), longestPause)
	return now
}
