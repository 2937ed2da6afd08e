package inplace

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// A resize goes ahead of the label and the state that record it, and the server takes the two in two writes. If only
// the first one is done and the template changes back, the label names the revision that the pod is to have, and its
// resources belong to another revision. Only metadata.managedFields distinguishes that from a request of an autoscaler:
// the field manager of a resize names the revision that the resize is written for.

// recordTime is how long an update may take to record its resize before the pod gets the resources of its own revision
// back. A kubelet that reports the resize between the two writes makes the second one a conflict, which the next pass
// repeats.
const recordTime = time.Minute

// UnrecordedResize names the containers, sorted, with resources that differ from the template of the pod's own
// revision, because an update to another revision has resized them and is not recorded. Wait is how long that update
// may still continue.
func UnrecordedResize(pod *corev1.Pod, template *corev1.PodTemplateSpec, o Options, now time.Time) (containers []string, wait time.Duration) {
	entries := podstate.ResizesForOthers(pod)
	if !o.Resize || len(entries) == 0 {
		return nil, 0
	}
	before := record.Read(action.NewPodChange(pod, metav1.Time{}))
	if before.Unreadable() {
		return nil, 0
	}
	lost := unrecorded(before, pod, template, o)
	if pending := pending(before); pending != nil {
		lost = lost.Difference(pending.Resources)
	}
	for _, e := range entries {
		if e.Time != nil {
			wait = max(wait, recordTime-now.Sub(e.Time.Time).Abs())
		}
	}
	return sets.List(lost), wait
}

// unrecorded are the containers with resources that differ from the template and were written last by an update to
// another revision than the pod's. An update has dealt with the resizes that it saw when it began. A memory limit that the
// cluster does not lower stays as it is.
func unrecorded(p record.Prior, pod *corev1.Pod, template *corev1.PodTemplateSpec, o Options) sets.Set[string] {
	lost := sets.New[string]()
	for _, e := range podstate.ResizesForOthers(pod) {
		if p.State != nil && slices.Contains(p.State.SeenResizes, nameOf(e)) {
			continue
		}
		fields := resourcesIn(e)
		for _, want := range podspec.LongRunning(&template.Spec) {
			have := running.Container(pod, want.Name)
			wanted := quantity.Effective(want.Resources)
			if have != nil && fields[want.Name].differ(have.Resources, wanted) && o.LoweredLimit(have, wanted) == "" {
				lost.Insert(want.Name)
			}
		}
	}
	return lost
}

// seenResizes are the resizes for revisions other than the revision of an update that begins.
func seenResizes(pod *corev1.Pod, revision string) []string {
	var seen []string
	for _, e := range pod.ManagedFields {
		if hash := podstate.ResizedFor(e); hash != "" && hash != podstate.ShortHash(revision) {
			seen = append(seen, nameOf(e))
		}
	}
	return seen
}

// nameOf distinguishes a resize from others by its revision and its moment.
func nameOf(e metav1.ManagedFieldsEntry) string {
	name := podstate.ResizedFor(e)
	if e.Time != nil {
		name += "@" + e.Time.UTC().Format(time.RFC3339)
	}
	return name
}

func resizeManager(revision string) string {
	return contract.ResizeManagerPrefix + podstate.ShortHash(revision)
}

// resourceFields are the quantities of a container that one client has written last.
type resourceFields struct{ limits, requests []corev1.ResourceName }

// differ reports whether one of the quantities is another one than wanted, where one is.
func (f resourceFields) differ(have, want corev1.ResourceRequirements) bool {
	missing := quantity.Missing(have, want)
	return slices.ContainsFunc(f.limits, func(n corev1.ResourceName) bool { return quantity.Has(missing.Limits, n) }) ||
		slices.ContainsFunc(f.requests, func(n corev1.ResourceName) bool { return quantity.Has(missing.Requests, n) })
}

// fieldTree is the JSON of a FieldsV1.
type fieldTree map[string]fieldTree

// resourcesIn are the resources that the entry is about, by container. Of an entry that cannot be read there are none.
func resourcesIn(e metav1.ManagedFieldsEntry) map[string]resourceFields {
	var fields fieldTree
	if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	found := map[string]resourceFields{}
	for _, list := range []string{"f:containers", "f:initContainers"} {
		for key, container := range fields["f:spec"][list] {
			var id struct{ Name string }
			text, isKey := strings.CutPrefix(key, "k:")
			if !isKey || json.Unmarshal([]byte(text), &id) != nil {
				continue
			}
			resources := container["f:resources"]
			found[id.Name] = resourceFields{limits: resources["f:limits"].names(), requests: resources["f:requests"].names()}
		}
	}
	return found
}

func (t fieldTree) names() []corev1.ResourceName {
	var names []corev1.ResourceName
	for key := range t {
		if name, isField := strings.CutPrefix(key, "f:"); isField {
			names = append(names, corev1.ResourceName(name))
		}
	}
	return names
}
