package memory

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// noteUnready notes the nodes that are not ready, and returns since when. A condition that goes from one state of
// that to another begins again; the remembered time does not.
func (s *knownSet) noteUnready(nodes []*corev1.Node) map[string]time.Time {
	unready, byName := map[types.UID]time.Time{}, map[string]time.Time{}
	for _, node := range nodes {
		since, ready := plan.UnreadySince(node)
		if ready {
			continue
		}
		if before, known := s.unready[node.UID]; known && before.Before(since) {
			since = before
		}
		unready[node.UID], byName[node.Name] = since, since
	}
	s.unready = unready
	return byName
}

// noteStrays notes the pods that belong to no node, and returns the new ones.
func (s *knownSet) noteStrays(pods []*corev1.Pod) (added []*corev1.Pod) {
	strays := map[types.UID]bool{}
	for _, pod := range pods {
		if eligibility.NodeOf(pod) != "" {
			continue
		}
		if strays[pod.UID] = true; !s.strays[pod.UID] {
			added = append(added, pod)
		}
	}
	s.strays = strays
	return added
}
