package cloneset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/podtemplate"
	"github.com/flotilla-project/flotilla/core/revision"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// history finds the revision of a set's template and remembers the answer for as long as neither
// the set's spec nor its revisions change.
type history struct {
	reader    *fastclient.Reader
	templates *podtemplate.Checker

	mu    sync.Mutex
	known map[types.NamespacedName]remembered
}

type remembered struct {
	key    string
	choice revision.Choice
}

func (h *history) choose(ctx context.Context, s plan.Snapshot) (revision.Choice, error) {
	name := types.NamespacedName{Namespace: s.Set.Namespace, Name: s.Set.Name}
	key := historyKey(s.Set, s.Revisions)
	h.mu.Lock()
	old, ok := h.known[name]
	h.mu.Unlock()
	if ok && old.key == key {
		return old.choice, nil
	}
	collisions := int32(0)
	if c := s.Set.Status.CollisionCount; c != nil {
		collisions = *c
	}
	choice, err := revision.Choose(revision.Input{
		Owner: s.Set, Kind: v1beta1.GroupVersion.WithKind(v1beta1.Kind), Template: &s.Set.Spec.Template,
		Absent: revision.PullAlways, ClaimsHash: &s.ClaimsHash, Owned: s.Revisions,
		Current: s.Set.Status.CurrentRevision, CollisionCount: collisions,
		Same: func(stored, present *corev1.PodTemplateSpec) bool {
			return h.same(ctx, s.Set, stored, present)
		},
		Lookup: func(revisionName string) *appsv1.ControllerRevision {
			r, err := fastclient.Get[appsv1.ControllerRevision](ctx, h.reader, types.NamespacedName{Namespace: s.Set.Namespace, Name: revisionName})
			if err != nil {
				return nil
			}
			return r
		},
	})
	if err != nil {
		return choice, fmt.Errorf("find the template's revision: %w", err)
	}
	if !choice.Create {
		h.mu.Lock()
		h.known[name] = remembered{key, choice}
		h.mu.Unlock()
	}
	return choice, nil
}

// same compares by core's own defaults first; the API server is asked for its defaults only where
// those leave a difference.
func (h *history) same(ctx context.Context, set *v1beta1.CloneSet, stored, present *corev1.PodTemplateSpec) bool {
	if revision.Equal(stored, present, revision.PullAlways) {
		return true
	}
	claims := make([]string, 0, len(set.Spec.VolumeClaimTemplates))
	for i := range set.Spec.VolumeClaimTemplates {
		claims = append(claims, set.Spec.VolumeClaimTemplates[i].Name)
	}
	a, errA := h.templates.Default(ctx, set.Namespace, stored, claims...)
	b, errB := h.templates.Default(ctx, set.Namespace, present, claims...)
	if errA != nil || errB != nil {
		log.FromContext(ctx).V(1).Info("compared templates without the server's defaults", "stored", errA, "present", errB)
		return false
	}
	return revision.Equal(a, b, revision.PullAlways)
}

func (h *history) forget(name types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, name)
}

func historyKey(set *v1beta1.CloneSet, revisions []*appsv1.ControllerRevision) string {
	parts := make([]string, 0, len(revisions)+1)
	for _, r := range revisions {
		parts = append(parts, string(r.UID)+"@"+r.ResourceVersion)
	}
	slices.Sort(parts)
	return fmt.Sprintf("%s %d %s %s", set.UID, set.Generation, set.Status.CurrentRevision, strings.Join(parts, " "))
}
