package subsets

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// MatchOf returns which subset the annotation of a pod names, and whether it names one.
func MatchOf(pod *corev1.Pod) (m v1beta1.Match, ok bool) {
	m, ok = Read(pod)
	return m, ok && m.Name != "" && m.Subset != ""
}

// NameOf returns the name of the spread that the pod belongs to, in a subset or in none of them; empty for none.
func NameOf(pod *corev1.Pod) string {
	m, _ := Read(pod)
	return m.Name
}

// Read returns the content of a pod's annotation, and whether that can be read.
func Read(pod *corev1.Pod) (m v1beta1.Match, ok bool) {
	text, found := pod.Annotations[v1beta1.MatchedAnnotation]
	if !found || json.Unmarshal([]byte(text), &m) != nil { // encoding/json matches names in any case of letters
		return v1beta1.Match{}, false
	}
	return m, true
}

// Text returns the value of the annotation.
func Text(m v1beta1.Match) string {
	raw, _ := json.Marshal(m) // texts always have a JSON
	return string(raw)
}

// Versioned are the kinds of controllers of pods with distinct revisions.
type Versioned []schema.GroupKind

// Of reports whether the revisions of pods that an object of the kind controls are distinct.
func (v Versioned) Of(kind schema.GroupKind) bool { return slices.Contains(v, kind) }

// VersionOf returns the revision of a pod, under which its places are kept.
func VersionOf(pod metav1.Object, versioned Versioned) string {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || !versioned.Of(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()) {
		return v1beta1.VersionIgnored
	}
	return RevisionOf(pod.GetLabels())
}

// VersionAmong returns the revision of a pod if it is one of the known ones, which all others share. Nil knows all.
func VersionAmong(known []string, pod metav1.Object, versioned Versioned) string {
	version := VersionOf(pod, versioned)
	if known != nil && !slices.Contains(known, version) {
		return v1beta1.VersionIgnored
	}
	return version
}

// RevisionOf returns the revision in the labels of a pod, or of a ReplicaSet.
func RevisionOf(labels map[string]string) string {
	if hash := labels[contract.TemplateHashLabel]; hash != "" {
		return hash
	}
	if revision := labels[contract.RevisionLabel]; revision != "" {
		return podstate.ShortHash(revision)
	}
	return v1beta1.VersionIgnored
}

// Index returns the place of a subset in the list, -1 if there is none of the name.
func Index(spread *v1beta1.WorkloadSpread, subset string) int {
	return slices.IndexFunc(spread.Spec.Subsets, func(s v1beta1.WorkloadSpreadSubset) bool { return s.Name == subset })
}

// IgnoresMetadata reports whether the labels and annotations of patches are kept off pods that existed before.
func IgnoresMetadata(spread *v1beta1.WorkloadSpread) bool {
	return strings.EqualFold(spread.Annotations[v1beta1.IgnorePatchMetadataAnnotation], "true")
}
