package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// Digest returns the state of the world without its random parts: names, IDs, versions, times and addresses. Two runs
// that end in the same state have the same digest.
func Digest(w *World) string {
	var lines []string
	for _, kind := range w.Kinds() {
		for _, o := range w.View(nil).Objects(kind) {
			line := kind + " " + strings.Join(labelsOf(o), ",") + " finalizers=" + strings.Join(o.GetFinalizers(), ",") +
				fmt.Sprintf(" owners=%d terminating=%t", len(o.GetOwnerReferences()), o.GetDeletionTimestamp() != nil)
			switch o := o.(type) {
			case *corev1.Pod:
				line += podDigest(o)
			case *corev1.PersistentVolumeClaim:
			case *appsv1.ControllerRevision:
				line += fmt.Sprintf(" %s %d %s", o.Name, o.Revision, o.Data.Raw)
			default:
				spec, _ := json.Marshal(cluster.Member(o, "Spec")) // a spec came from JSON
				line += fmt.Sprintf(" %s %s", o.GetName(), spec)
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func podDigest(pod *corev1.Pod) string {
	var b strings.Builder
	for _, c := range podspec.LongRunning(&pod.Spec) {
		fmt.Fprintf(&b, " %s=%s", c.Name, c.Image)
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			for _, name := range slices.Sorted(maps.Keys(list)) {
				q := list[name]
				fmt.Fprintf(&b, " %s=%s", name, q.String())
			}
		}
	}
	var conditions []string
	for _, c := range pod.Status.Conditions {
		conditions = append(conditions, string(c.Type)+"="+string(c.Status))
	}
	slices.Sort(conditions)
	return fmt.Sprintf("%s volumes=%d %s %s", b.String(), len(pod.Spec.Volumes), pod.Status.Phase, strings.Join(conditions, " "))
}

// labelsOf returns the labels. Values that only name the object are replaced by *.
func labelsOf(o action.Object) []string {
	var list []string
	for k, v := range o.GetLabels() {
		if k == contract.InstanceIDLabel || v == o.GetName() {
			v = "*"
		}
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}
