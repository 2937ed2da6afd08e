package takeover

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podState has the fields of a pod that a handover must not change.
type podState struct {
	name string
	// written is the digest of the fields that clients other than its node write: spec and metadata.
	written [sha256.Size]byte
	// writers are the fields among them that each field manager has written, and when.
	writers map[string]string
	// deleted means that its deletion has begun.
	deleted bool
	// containers are the restarts and identities of its containers by name.
	containers map[string]string
}

// workloads is the group of OpenKruise's kinds that own pods.
const workloads = "apps.kruise.io"

// remember returns the states of pods that objects of OpenKruise's kinds own, by UID.
func remember(pods []unstructured.Unstructured) (map[string]podState, error) {
	states := map[string]podState{}
	for _, pod := range pods {
		if !slices.ContainsFunc(pod.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
			group, _, _ := strings.Cut(owner.APIVersion, "/")
			return group == workloads
		}) {
			continue
		}
		state, err := stateOf(&pod)
		if err != nil {
			return nil, err
		}
		states[string(pod.GetUID())] = state
	}
	return states, nil
}

func stateOf(pod *unstructured.Unstructured) (podState, error) {
	metadata, _, _ := unstructured.NestedMap(pod.Object, "metadata")
	// The first two change with every heartbeat of a node, and the others are reported by themselves.
	for _, field := range []string{"resourceVersion", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(metadata, field)
	}
	text, err := json.Marshal([]any{metadata, pod.Object["spec"]})
	if err != nil {
		return podState{}, fmt.Errorf("read pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), err)
	}
	state := podState{
		name:       pod.GetNamespace() + "/" + pod.GetName(),
		written:    sha256.Sum256(text),
		containers: map[string]string{},
		writers:    map[string]string{},
		deleted:    pod.GetDeletionTimestamp() != nil,
	}
	for _, entry := range pod.GetManagedFields() {
		if entry.Subresource != "status" {
			state.writers[entry.Manager] += fmt.Sprint(entry.Operation, entry.Subresource, entry.Time, entry.FieldsV1)
		}
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", list)
		for _, status := range statuses {
			if fields, ok := status.(map[string]any); ok {
				name, _ := fields["name"].(string)
				state.containers[name] = fmt.Sprint(fields["restartCount"], fields["containerID"])
			}
		}
	}
	return state, nil
}

// changed returns the changes of pods that were there before, by name, and the client that made them: the writer of a pod is
// in its managed fields, and the reason why one goes or restarts is in the newest event about it. New pods do not count.
func changed(before, after map[string]podState, events []unstructured.Unstructured) []string {
	var lines []string
	for uid, was := range before {
		is, there := after[uid]
		switch {
		case !there:
			lines = append(lines, was.name+" is gone"+cause(uid, was.name, events))
			continue
		case is.deleted && !was.deleted:
			lines = append(lines, was.name+" is being deleted"+cause(uid, was.name, events))
		}
		if is.written != was.written {
			lines = append(lines, was.name+" was written"+by(was.writers, is.writers))
		}
		for container, life := range was.containers {
			if is.containers[container] != life {
				lines = append(lines, was.name+": container "+container+" was restarted"+cause(uid, was.name, events))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// by names the field managers that have written something new.
func by(before, after map[string]string) string {
	var names []string
	for _, manager := range slices.Sorted(maps.Keys(after)) {
		if after[manager] != before[manager] {
			names = append(names, manager)
		}
	}
	if len(names) == 0 {
		return "" // a client that has removed fields leaves no trace
	}
	return " by " + strings.Join(names, ", ")
}

// cause returns the text of the newest event that is about a pod, or that reports to its owner about it.
func cause(uid, pod string, events []unstructured.Unstructured) string {
	_, name, _ := strings.Cut(pod, "/")
	newest, told := time.Time{}, ""
	for _, event := range events {
		about, _, _ := unstructured.NestedString(event.Object, "involvedObject", "uid")
		namespace, _, _ := unstructured.NestedString(event.Object, "involvedObject", "namespace")
		message, _, _ := unstructured.NestedString(event.Object, "message")
		ofOwner := namespace+"/"+name == pod && slices.Contains(strings.FieldsFunc(message, noName), name)
		if at := timeOf(event); (about == uid || ofOwner) && !at.Before(newest) {
			reason, _, _ := unstructured.NestedString(event.Object, "reason")
			component, _, _ := unstructured.NestedString(event.Object, "source", "component")
			controller, _, _ := unstructured.NestedString(event.Object, "reportingComponent")
			newest = at
			told = fmt.Sprintf(": %s by %s: %s", reason, cmp.Or(controller, component, "unknown"), message)
		}
	}
	return told
}

// noName reports whether a character cannot be in the name of a pod.
func noName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
}

// timeOf returns when an event was seen last.
func timeOf(event unstructured.Unstructured) time.Time {
	for _, path := range [][]string{{"series", "lastObservedTime"}, {"lastTimestamp"}, {"eventTime"}, {"metadata", "creationTimestamp"}} {
		text, _, _ := unstructured.NestedString(event.Object, path...)
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at
		}
	}
	return time.Time{}
}
