package diff

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// Revision is one revision of a workload's pod template.
type Revision struct {
	// Name is the name of the revision, or its short hash; it is recorded in the pod's state annotation.
	Name string
	// Template is the pod template, read-only.
	Template *corev1.PodTemplateSpec
	// ClaimsHash is the hash of the claim templates at the time of the revision, nil when unknown.
	ClaimsHash *string
}

// Options are the feature gates and policies that decide which changes may happen in place.
type Options struct {
	// EnvFromMetadata restarts containers if their environment reads a changed label or annotation or if
	// contract.RestartInPlaceAnnotation names them. Without it such keys are plain metadata.
	EnvFromMetadata bool
	// Resize allows changes of cpu and memory.
	Resize bool
	// KeepMemoryLimits is true if the cluster lowers no memory limit of a container that does not restart for it
	// (Kubernetes 1.33).
	KeepMemoryLimits bool
	// CompareClaims makes a change of the claim templates a reason to recreate.
	CompareClaims bool
	// DefaultPullPolicy decides how a container without imagePullPolicy is read.
	DefaultPullPolicy podspec.DefaultPullPolicy
}

// NotPossibleError is the reason why a change needs a new pod.
type NotPossibleError struct {
	// Path is the field in the way, such as "spec.containers[0].ports"; it may be empty.
	Path string
	// Message describes the reason.
	Message string
}

// Error is the path and the message.
func (e *NotPossibleError) Error() string {
	if e.Path == "" {
		return "not possible in place: " + e.Message
	}
	return fmt.Sprintf("not possible in place: %s: %s", e.Path, e.Message)
}

// Templates are the differences between the templates of two revisions, compared by their meaning, defaults included, not
// by their bytes. The error is a *NotPossibleError if one of them cannot be made on a running pod.
func Templates(from, to *Revision, o Options) (*Scope, error) {
	if from == nil || to == nil || from.Template == nil || to.Template == nil {
		return nil, &NotPossibleError{Message: "the old or the new revision is unknown"}
	}
	if o.CompareClaims && from.ClaimsHash != nil && to.ClaimsHash != nil && *from.ClaimsHash != *to.ClaimsHash {
		return nil, &NotPossibleError{Path: "spec.volumeClaimTemplates", Message: "the claim templates differ"}
	}
	before, after := &from.Template.Spec, &to.Template.Spec
	if err := checkContainerList(before, after); err != nil {
		return nil, err
	}
	fixedBefore, fixedAfter := fixedParts(before, after, o)
	if path := firstDifference(fixedBefore, fixedAfter, "spec"); path != "" {
		return nil, &NotPossibleError{Path: path, Message: "the field cannot change on a running pod"}
	}
	s := NewScope()
	if err := s.addContainers(before, after, o); err != nil {
		return nil, err
	}
	s.addMetadata(from.Template, to.Template)
	s.addRestarts(from.Template, to.Template, o)
	return &s, nil
}

// checkContainerList wants the same containers at the same positions.
func checkContainerList(before, after *corev1.PodSpec) error {
	names := func(s *corev1.PodSpec) []string {
		var list []string
		for i := range s.Containers {
			list = append(list, s.Containers[i].Name)
		}
		return list
	}
	if !slices.Equal(names(before), names(after)) {
		return &NotPossibleError{Path: "spec.containers", Message: "containers were added, removed, renamed or reordered"}
	}
	return nil
}

// fixedParts are the parts of two specs with the same containers that cannot change in place. If neither spec names a
// pull policy, a new tag that leads to another default policy is no change: the pod keeps the policy that it was
// created with.
func fixedParts(before, after *corev1.PodSpec, o Options) (was, is *corev1.PodSpec) {
	was, is = fixedPart(before, o), fixedPart(after, o)
	for i := range is.Containers {
		if before.Containers[i].ImagePullPolicy == "" && after.Containers[i].ImagePullPolicy == "" {
			is.Containers[i].ImagePullPolicy = was.Containers[i].ImagePullPolicy
		}
	}
	for i := range min(len(was.InitContainers), len(is.InitContainers)) {
		if before.InitContainers[i].ImagePullPolicy == "" && after.InitContainers[i].ImagePullPolicy == "" {
			is.InitContainers[i].ImagePullPolicy = was.InitContainers[i].ImagePullPolicy
		}
	}
	return was, is
}

// fixedPart is a copy of the spec with its defaults, because one may be stored with them and the next without. It lacks
// the fields that may change in place.
func fixedPart(spec *corev1.PodSpec, o Options) *corev1.PodSpec {
	fixed := spec.DeepCopy()
	podspec.Default(fixed, o.DefaultPullPolicy)
	for _, c := range podspec.LongRunning(fixed) {
		c.Image = ""
		sortEnvironment(c.Env)
		if o.Resize {
			for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
				for _, name := range quantity.Resizable() {
					delete(list, name)
				}
			}
		}
	}
	return fixed
}

// sortEnvironment puts entries in the order of their names where the order means nothing: none refers to another one by
// $(NAME), which must stand before it, and none replaces another one of its name.
func sortEnvironment(entries []corev1.EnvVar) {
	names := map[string]bool{}
	for i := range entries {
		if names[entries[i].Name] || strings.Contains(entries[i].Value, "$(") {
			return
		}
		names[entries[i].Name] = true
	}
	slices.SortFunc(entries, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
}

// addContainers adds the differences between two specs with equal fixed parts.
func (s Scope) addContainers(before, after *corev1.PodSpec, o Options) error {
	for i := range after.InitContainers {
		if !podspec.IsSidecar(&after.InitContainers[i]) {
			continue
		}
		path := fmt.Sprintf("spec.initContainers[%d]", i)
		if err := s.addContainer(&before.InitContainers[i], &after.InitContainers[i], path, o); err != nil {
			return err
		}
	}
	for i := range after.Containers {
		if err := s.addContainer(&before.Containers[i], &after.Containers[i], fmt.Sprintf("spec.containers[%d]", i), o); err != nil {
			return err
		}
	}
	if was, is := quantity.QoSClass(before), quantity.QoSClass(after); s.Resources.Len() > 0 && was != is {
		return &NotPossibleError{
			Path: "spec.containers[*].resources", Message: fmt.Sprintf("the QoS class would change from %s to %s", was, is),
		}
	}
	return nil
}

func (s Scope) addContainer(old, now *corev1.Container, path string, o Options) error {
	if old.Image != now.Image {
		s.Images.Insert(now.Name)
	}
	if !o.Resize || equality.Semantic.DeepEqual(quantity.Effective(old.Resources), quantity.Effective(now.Resources)) {
		return nil
	}
	if quantity := quantity.Removed(quantity.Effective(old.Resources), quantity.Effective(now.Resources)); quantity != "" {
		return &NotPossibleError{Path: path + ".resources." + quantity, Message: "a request or limit cannot be removed"}
	}
	if limit := o.LoweredLimit(old, quantity.Effective(now.Resources)); limit != "" {
		return NotLowered(path + ".resources." + limit)
	}
	s.Resources.Insert(now.Name)
	return nil
}
