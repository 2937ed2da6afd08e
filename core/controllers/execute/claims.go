package execute

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/memory"
)

const (
	// podPage is how many pods the server is asked for at a time.
	podPage = 500
	// listValid is how long a pass and the passes that continue it share one list.
	listValid = 5 * time.Second
)

// mounts lists which pods mount which claims, read from the server when the first claim of a pass is to be deleted, or
// to be deleted with its pod. A claim that is deleted while a pod mounts it is lost as soon as that pod ends, and
// neither a cache nor a plan knows all pods.
type mounts struct {
	once   sync.Once
	listed time.Time // when the list was begun
	err    error
	pods   map[string][]mounter // by claim

	removed sync.Map // the UIDs of the pods that were deleted since
}

// lists are those that the next pass of a workload may use.
type lists struct{ memory.Objects[*mounts] }

// take returns the list that the last pass of the workload has left if it is still valid, or a new one.
func (l *lists) take(workload memory.Key, now time.Time) *mounts {
	left, ok := l.Get(workload)
	if !ok || now.Sub(left.listed) > listValid {
		return &mounts{}
	}
	return left
}

// leave keeps a list for the next pass of the workload. Only one that was read is worth that.
func (l *lists) leave(workload memory.Key, m *mounts) {
	if !m.listed.IsZero() && m.err == nil {
		l.Set(workload, m)
	}
}

// mounter is a pod that mounts a claim and is not terminating.
type mounter struct {
	uid  types.UID
	name string
}

// mountingPod returns the name of a pod that mounts the claim, is not terminating and is not the excepted one. It is
// empty if there is none.
func (p *pass) mountingPod(ctx context.Context, claim client.Object, except types.UID) (string, error) {
	p.mounts.once.Do(func() {
		p.mounts.listed = p.options.Stopwatch.Now()
		p.mounts.pods, p.mounts.err = p.mounters(ctx, claim.GetNamespace())
		p.listing.Store(int64(p.options.Stopwatch.Since(p.mounts.listed)))
	})
	if p.mounts.err != nil {
		return "", p.mounts.err
	}
	for _, pod := range p.mounts.pods[claim.GetName()] {
		if _, removed := p.mounts.removed.Load(pod.uid); !removed && pod.uid != except {
			return pod.name, nil
		}
	}
	return "", nil
}

// mounters lists the pods that mount each claim of the namespace.
func (p *pass) mounters(ctx context.Context, namespace string) (map[string][]mounter, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	found := map[string][]mounter{}
	for list := (&corev1.PodList{}); ; {
		from := list.Continue
		list = &corev1.PodList{}
		if err := p.options.Live.List(ctx, list, client.InNamespace(namespace), client.Limit(podPage), client.Continue(from)); err != nil {
			return nil, fmt.Errorf("list the pods that mount claims: %w", err)
		}
		for i := range list.Items {
			pod := &list.Items[i]
			for k := range pod.Spec.Volumes {
				if c := pod.Spec.Volumes[k].PersistentVolumeClaim; c != nil && pod.DeletionTimestamp == nil {
					found[c.ClaimName] = append(found[c.ClaimName], mounter{pod.UID, pod.Name})
				}
			}
		}
		if list.Continue == "" {
			return found, nil
		}
	}
}
