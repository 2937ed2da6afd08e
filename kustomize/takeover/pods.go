package takeover

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podState is what a handover must not change of a pod.
type podState struct {
	name string
	// written is the digest of what others than its node write: spec and metadata.
	written [sha256.Size]byte
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
	// Both change with every heartbeat of a node.
	delete(metadata, "resourceVersion")
	delete(metadata, "managedFields")
	text, err := json.Marshal([]any{metadata, pod.Object["spec"]})
	if err != nil {
		return podState{}, fmt.Errorf("read pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), err)
	}
	state := podState{
		name: pod.GetNamespace() + "/" + pod.GetName(), written: sha256.Sum256(text), containers: map[string]string{},
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

// changed tells what happened to pods that were there before, by name. Pods that are new are nobody's loss.
func changed(before, after map[string]podState) []string {
	var lines []string
	for uid, was := range before {
		is, there := after[uid]
		switch {
		case !there:
			lines = append(lines, was.name+" is gone")
			continue
		case is.written != was.written:
			lines = append(lines, was.name+" was written")
		}
		for container, life := range was.containers {
			if is.containers[container] != life {
				lines = append(lines, was.name+": container "+container+" was restarted")
			}
		}
	}
	slices.Sort(lines)
	return lines
}
