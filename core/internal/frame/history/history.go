package history

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// History is safe for concurrent use.
type History struct {
	reader    *fastclient.Reader
	templates *podtemplate.Checker

	known memory.Objects[remembered]
}

type remembered struct {
	key    string
	choice revision.Choice
}

// New returns an empty History.
func New(reader *fastclient.Reader, templates *podtemplate.Checker) *History {
	return &History{reader: reader, templates: templates}
}

// Choose calls revision.Choose with Lookup and Same filled in. Same compares, until one of them sees no difference:
// with the caller's Same, with core's defaults, with the API server's defaults. The volumes are names that claim
// templates provide to the pod template.
func (h *History) Choose(ctx context.Context, in revision.Input, volumes ...string) (revision.Choice, error) {
	owner := memory.KeyOf(in.Owner)
	key := keyOf(in)
	if old, ok := h.known.Get(owner); ok && old.key == key {
		return old.choice, nil
	}
	in.Same = h.same(ctx, in, volumes)
	in.Lookup = func(revisionName string) *appsv1.ControllerRevision {
		r, err := fastclient.Get[appsv1.ControllerRevision](ctx, h.reader, types.NamespacedName{Namespace: owner.Namespace, Name: revisionName})
		if err != nil {
			return nil
		}
		return r
	}
	choice, err := revision.Choose(in)
	if err != nil {
		return choice, fmt.Errorf("find the template's revision: %w", err)
	}
	if !choice.Create {
		h.known.Set(owner, remembered{key, choice})
	}
	return choice, nil
}

func (h *History) same(ctx context.Context, in revision.Input, volumes []string) func(stored, present *corev1.PodTemplateSpec) bool {
	return func(stored, present *corev1.PodTemplateSpec) bool {
		if in.Same != nil && in.Same(stored, present) || podspec.Equal(stored, present, in.DefaultPullPolicy) {
			return true
		}
		a, errA := h.templates.Default(ctx, in.Owner.GetNamespace(), stored, volumes...)
		b, errB := h.templates.Default(ctx, in.Owner.GetNamespace(), present, volumes...)
		if errA != nil || errB != nil {
			log.FromContext(ctx).V(1).Info("compared templates without the defaults of the API server", "stored", errA, "present", errB)
			return false
		}
		return podspec.Equal(a, b, in.DefaultPullPolicy)
	}
}

// Orphans returns the cached revisions without a controller that the selector of a workload matches: they remain when a
// workload was deleted with its dependents orphaned. A workload that is being deleted or has a selector that matches
// nothing or everything adopts none.
func (h *History) Orphans(ctx context.Context, owner client.Object, of *metav1.LabelSelector) ([]*appsv1.ControllerRevision, error) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil || selector.Empty() || owner.GetDeletionTimestamp() != nil {
		return nil, nil //nolint:nilerr // the plan reports a selector that cannot be read
	}
	all, err := fastclient.Uncontrolled[appsv1.ControllerRevision](ctx, h.reader, owner.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("list revisions without a controller: %w", err)
	}
	return slices.DeleteFunc(all, func(r *appsv1.ControllerRevision) bool {
		return r.DeletionTimestamp != nil || !selector.Matches(labels.Set(r.Labels))
	}), nil
}

// Forget drops the memory of a workload.
func (h *History) Forget(name types.NamespacedName) { h.known.Forget(name) }

func keyOf(in revision.Input) string {
	parts := make([]string, 0, len(in.Owned)+len(in.Orphans))
	for _, r := range slices.Concat(in.Owned, in.Orphans) {
		parts = append(parts, string(r.UID)+"@"+r.ResourceVersion)
	}
	slices.Sort(parts)
	return fmt.Sprintf("%d %s %d %s", in.Owner.GetGeneration(), in.Current, in.CollisionCount, strings.Join(parts, " "))
}
