package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Looks are pods, by their names, as the server had them when it was asked, for as long as the cache shows older ones.
// Without them the next pass would miss an entry that was dropped because of the server's answer.
type Looks map[string]Look

// Look is the server's answer about a pod.
type Look struct {
	// Pod is the pod, nil if there was none of the name.
	Pod *corev1.Pod
	// Gone are the UIDs of earlier pods of the name.
	Gone []types.UID
	// Unseen is true of a pod where the cache had none of the name.
	Unseen bool
}

// NewLook returns the server's answer about a name, given the UID in the ledger and the pod in the cache.
func NewLook(pod *corev1.Pod, recorded types.UID, cached *corev1.Pod) Look {
	l := Look{
		Pod:    pod,
		Gone:   []types.UID{recorded},
		Unseen: pod != nil && cached == nil,
	}
	if cached != nil {
		l.Gone = append(l.Gone, cached.UID)
	}
	if pod != nil {
		l.Gone = slices.DeleteFunc(l.Gone, func(uid types.UID) bool { return uid == pod.UID })
	}
	return l
}

// Newest returns the newer one of the look and a cached pod; nil if it is gone.
func (ls Looks) Newest(name string, cached *corev1.Pod) *corev1.Pod {
	l, ok := ls[name]
	switch {
	case !ok:
		return cached
	case cached == nil:
		return l.Pod
	case slices.Contains(l.Gone, cached.UID):
		return l.Pod
	case l.Pod == nil || !isOlder(cached, l.Pod):
		return cached
	}
	return l.Pod
}

// StillNeeded returns the looks that the cache does not show yet. If the cache does not have a pod, the server is asked
// again: the pod may have come and gone unseen, and its entry would stay permanently.
func (ls Looks) StillNeeded(cached func(name string) *corev1.Pod) Looks {
	next := Looks{}
	for name, l := range ls {
		if c := cached(name); c != nil && ls.Newest(name, c) != c {
			next[name] = l
		}
	}
	return next
}

func isOlder(a, b *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}
