package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Unknown is a number that the object alone does not show.
const Unknown = -1

// Set has the fields that commands read of a workload.
type Set struct {
	Kind            Kind
	Version         string
	Namespace, Name string
	UID             types.UID
	// Generation is the generation of the spec, Observed the one that the status is about.
	Generation, Observed int64
	Deleting             bool

	// Wanted is how many pods there should be; Pods, Ready, Available and Updated count those that are.
	Wanted, Pods, Ready, Available, Updated int
	// Target is how many pods the update is to reach: all but the partition. It is Unknown for a DaemonSet that selects
	// nodes.
	Target int
	// UpdateRevision is where pods go, CurrentRevision where they come from. The latter is empty for DaemonSets.
	UpdateRevision, CurrentRevision string

	Paused, OnDelete bool
	// Policy is podUpdatePolicy, or rollingUpdateType of a DaemonSet; empty is the kind's default, to recreate pods.
	Policy     string
	Selector   labels.Selector
	Lifecycle  Lifecycle
	Conditions []Condition

	object map[string]any
}

// Lifecycle are the hooks of a workload.
type Lifecycle struct {
	PreDelete     *Hook `json:"preDelete"`
	InPlaceUpdate *Hook `json:"inPlaceUpdate"`
	PreNormal     *Hook `json:"preNormal"`
}

// Hook holds pods by labels or finalizers.
type Hook struct {
	LabelsHandler     map[string]string `json:"labelsHandler"`
	FinalizersHandler []string          `json:"finalizersHandler"`
}

// String names the labels and finalizers that hold a pod, or let it go.
func (h *Hook) String() string {
	var parts []string
	if len(h.LabelsHandler) > 0 {
		parts = append(parts, "label "+labels.Set(h.LabelsHandler).String())
	}
	if len(h.FinalizersHandler) > 0 {
		parts = append(parts, "finalizer "+strings.Join(h.FinalizersHandler, ", "))
	}
	return strings.Join(parts, " and ")
}

// Condition is one condition of a workload's status.
type Condition struct{ Type, Status, Reason, Message string }

// String names the workload as commands do.
func (s *Set) String() string { return Named{s.Kind, s.Name}.String() }

// InPlace reports whether pods are updated in place where that is possible.
func (s *Set) InPlace() bool { return strings.HasPrefix(s.Policy, "InPlace") }

// Condition returns the condition of the type, or nil.
func (s *Set) Condition(name string) *Condition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == name {
			return &s.Conditions[i]
		}
	}
	return nil
}

// IsUpdated reports whether a pod with this revision label is of the update revision. Labels and status have names of
// revisions or their hashes alone.
func (s *Set) IsUpdated(label string) bool { return SameRevision(label, s.UpdateRevision) }

// SameRevision reports whether two names, or hashes, are of one revision.
func SameRevision(a, b string) bool { return hash(a) != "" && hash(a) == hash(b) }

func hash(revision string) string { return revision[strings.LastIndex(revision, "-")+1:] }

// Read reads the fields of a workload from the API server's object.
func Read(kind Kind, object *unstructured.Unstructured) (*Set, error) {
	s := &Set{
		Kind:       kind,
		Version:    object.GroupVersionKind().Version,
		Namespace:  object.GetNamespace(),
		Name:       object.GetName(),
		UID:        object.GetUID(),
		Generation: object.GetGeneration(),
		Deleting:   object.GetDeletionTimestamp() != nil,
		object:     object.Object,
	}
	s.readStatus()
	s.readStrategy()
	selector, err := s.selector()
	if err != nil {
		return nil, fmt.Errorf("read the selector of %s: %w", s, err)
	}
	s.Selector = selector
	if err := s.decode(&s.Lifecycle, "spec", "lifecycle"); err != nil {
		return nil, fmt.Errorf("read the hooks of %s: %w", s, err)
	}
	return s, nil
}

func (s *Set) readStatus() {
	f := s.Kind.places
	count := func(name string) int { return int(s.number(0, "status", name)) }
	s.Observed = s.number(0, "status", "observedGeneration")
	s.Wanted = int(s.number(s.absentWanted(), f.wanted...))
	s.Pods = count(f.pods)
	s.Ready = count(f.ready)
	s.Available = count(f.available)
	s.Updated = count(f.updated)
	s.UpdateRevision = s.text("status", f.updateRevision)
	if s.UpdateRevision == "" {
		s.UpdateRevision = s.text("status", "daemonSetHash")
	}
	if f.current != "" {
		s.CurrentRevision = s.text("status", f.current)
	}
	list, _, _ := unstructured.NestedSlice(s.object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		text := func(name string) string { t, _, _ := unstructured.NestedString(c, name); return t }
		s.Conditions = append(s.Conditions, Condition{text("type"), text("status"), text("reason"), text("message")})
	}
}

// absentWanted is how an absent number of wanted pods reads: spec.replicas is 1, a count of nodes 0.
func (s *Set) absentWanted() int64 {
	if s.Kind.places.wanted[0] == "spec" {
		return 1
	}
	return 0
}

func (s *Set) readStrategy() {
	path := s.Kind.rollingUpdate(s.Version)
	field := func(name string) []string { return append(append([]string{}, path...), name) }
	kind := s.text("spec", "updateStrategy", "type")
	s.OnDelete = kind == "OnDelete"
	s.Paused, _, _ = unstructured.NestedBool(s.object, field("paused")...)
	switch {
	case s.Kind.Name == "DaemonSet":
		s.Policy = s.text(field("rollingUpdateType")...)
	case len(path) == 2: // the type of a flat strategy is its policy
		s.Policy = kind
	default:
		s.Policy = s.text(field("podUpdatePolicy")...)
	}
	partition, _, _ := unstructured.NestedFieldNoCopy(s.object, field("partition")...)
	s.Target = s.Wanted - s.kept(partition)
	if _, selects, _ := unstructured.NestedMap(s.object, field("selector")...); selects && s.Kind.Name == "DaemonSet" {
		s.Target = Unknown
	}
	if s.OnDelete {
		s.Target = s.Wanted
	}
}

// kept is how many pods a partition keeps at the old revision. A percentage is rounded down for nodes; else it is
// rounded up, and less than 100% always leaves one pod to update.
func (s *Set) kept(partition any) int {
	var kept int
	switch p := partition.(type) {
	case int64:
		kept = int(p)
	case string:
		percent, err := strconv.ParseFloat(strings.TrimSuffix(p, "%"), 64)
		if err != nil || !strings.HasSuffix(p, "%") {
			return 0
		}
		// Rounding to millionths first makes 33.3% of 1000 exactly 333.
		share := math.Round(percent*float64(s.Wanted)*1e4) / 1e6
		if s.Kind.Name == "DaemonSet" {
			kept = int(math.Floor(share))
			break
		}
		if kept = int(math.Ceil(share)); kept >= s.Wanted && s.Wanted > 1 && percent < 100 {
			kept = s.Wanted - 1
		}
	}
	return min(max(kept, 0), s.Wanted)
}

func (s *Set) selector() (labels.Selector, error) {
	var selector metav1.LabelSelector
	if err := s.decode(&selector, "spec", "selector"); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// Kept is how many pods the partition keeps at other revisions; 0 where a selector of nodes decides.
func (s *Set) Kept() int {
	if s.Target == Unknown {
		return 0
	}
	return s.Wanted - s.Target
}

// Old is how many pods there are that an update of all would change; pods that are missing will be new.
func (s *Set) Old() int { return max(min(s.Wanted, s.Pods)-s.Updated, 0) }

// RollingUpdatePath is where the spec has the partition.
func (s *Set) RollingUpdatePath() []string { return s.Kind.rollingUpdate(s.Version) }

// Template is the pod template as it is stored.
func (s *Set) Template() map[string]any {
	template, _, _ := unstructured.NestedMap(s.object, "spec", "template")
	return template
}

// Containers are the names of the template's native sidecars and containers, in the order in which they start.
func (s *Set) Containers() []string {
	var names []string
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(s.object, "spec", "template", "spec", list)
		for _, container := range containers {
			c, _ := container.(map[string]any)
			name, _, _ := unstructured.NestedString(c, "name")
			policy, _, _ := unstructured.NestedString(c, "restartPolicy")
			if list == "containers" || policy == "Always" {
				names = append(names, name)
			}
		}
	}
	return names
}

func (s *Set) decode(into any, path ...string) error {
	value, found, err := unstructured.NestedMap(s.object, path...)
	if err != nil || !found {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(value, into)
}

func (s *Set) text(path ...string) string {
	text, _, _ := unstructured.NestedString(s.object, path...)
	return text
}

func (s *Set) number(absent int64, path ...string) int64 {
	number, found, err := unstructured.NestedInt64(s.object, path...)
	if err != nil || !found {
		return absent
	}
	return number
}

// Finalizers keep a deleted workload.
func (s *Set) Finalizers() []string {
	finalizers, _, _ := unstructured.NestedStringSlice(s.object, "metadata", "finalizers")
	return finalizers
}
