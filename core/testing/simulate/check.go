package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// limit is an upper bound on a value that no write of the operator may exceed, or exceed by more.
type limit struct {
	name         string
	value, bound func(*cluster.View) int
}

// measures are the values of all limits: in the world as it is, and as the operator sees it.
type measures struct{ real, known []int }

// Limit requires that no write of the operator raises the value above the bound, or further above it. Changes by users,
// kubelets and time do not count, and neither do changes that the operator cannot know yet: a write is a violation only
// if it exceeds the bound both in the world and in the operator's last view with its own writes added. Adopting and
// releasing never count, because they only follow changes of labels and owners by others.
func (w *World) Limit(name string, value, bound func(*cluster.View) int) {
	w.limits = append(w.limits, limit{name, value, bound})
}

func (w *World) measure(actor string) measures {
	if actor != cluster.OperatorActor || len(w.limits) == 0 {
		return measures{}
	}
	values := func(v *cluster.View) []int {
		list := make([]int, len(w.limits))
		for i := range w.limits {
			list[i] = w.limits[i].value(v)
		}
		return list
	}
	return measures{real: values(w.View(nil)), known: values(w.known())}
}

func (w *World) checkLimits(e cluster.Event, before measures) {
	if e.Actor != cluster.OperatorActor || len(w.limits) == 0 || e.Old != nil && cluster.ControllerOf(e.Old) != cluster.ControllerOf(e.Object) {
		return
	}
	after := w.measure(e.Actor)
	for i := range w.limits {
		l := &w.limits[i]
		bound := l.bound(w.View(nil))
		if after.real[i] <= bound || after.real[i] <= before.real[i] {
			continue
		}
		if after.known[i] > l.bound(w.known()) && after.known[i] > before.known[i] {
			w.Violate("%s: %d, at most %d, after a write to %s %s", l.name, after.real[i], bound, e.Kind, e.Object.GetName())
		}
	}
}

// CountByRevision counts the pods by the short hash of their revision.
func CountByRevision(pods []*corev1.Pod) map[string]int {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[podstate.ShortHash(pod.Labels[contract.RevisionLabel])]++
	}
	return counts
}

// CheckUnique requires that no two active pods have the same value of the label.
func (w *World) CheckUnique(label string) {
	w.OnEvent(func(w *World, e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == cluster.Deleted || pod.Labels[label] == "" {
			return
		}
		for _, other := range w.Pods() {
			if podstate.Of(other, w.Now(), 0).Active && other.UID != pod.UID && other.Namespace == pod.Namespace && other.Labels[label] == pod.Labels[label] {
				w.Violate("pods %s and %s share %s=%s", pod.Name, other.Name, label, pod.Labels[label])
			}
		}
	})
}

// CheckOwnership requires that the operator never writes to a pod that the object with the UID controls neither before
// nor after the write. The first conditions of a pod are patched without a resourceVersion, so they may arrive after
// its release.
func (w *World) CheckOwnership(owner types.UID) {
	w.OnEvent(func(w *World, e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Actor != cluster.OperatorActor || cluster.ControllerOf(pod) == owner || e.Old != nil && cluster.ControllerOf(e.Old) == owner {
			return
		}
		if old, ok := e.Old.(*corev1.Pod); ok && e.Subresource == "status" && podstate.Condition(old, contract.InPlaceUpdateReady) == nil {
			return
		}
		w.Violate("a write to pod %s of somebody else", pod.Name)
	})
}

// CheckClaims requires that no claim is deleted that a non-terminating pod mounts, whoever owns the pod. It checks the
// operator and the garbage collector, which deletes claims whose owners, as the operator set them, no longer exist.
func (w *World) CheckClaims() {
	w.OnEvent(func(w *World, e cluster.Event) {
		claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
		if !ok || e.Actor != cluster.OperatorActor && e.Actor != cluster.CollectorActor || e.Old == nil || e.Old.GetDeletionTimestamp() != nil || claim.DeletionTimestamp == nil {
			return
		}
		if pod := w.MountingPod(claim, ""); pod != "" {
			w.Violate("claim %s is deleted and pod %s uses it", claim.Name, pod)
		}
	})
}

// CheckInPlace requires what every in-place update guarantees. The pod keeps its node and its address. With readiness
// gate InPlaceUpdateReady, images change only while the condition is not True, and the condition becomes True again
// only when the status shows that every container whose image was changed runs the image of the spec. The image of a
// native sidecar changes apart from those of other containers. No container is stopped before the kubelet has reported the
// pod not ready for as long as the grace period says, and from then on nobody reports it ready.
func (w *World) CheckInPlace() {
	changed := map[types.UID]map[string]bool{} // containers by their names
	out := newOutOfService()
	w.OnEvent(func(w *World, e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		old, _ := e.Old.(*corev1.Pod)
		if !ok || e.Type != cluster.Modified {
			return
		}
		if old.Spec.NodeName != "" && old.Spec.NodeName != pod.Spec.NodeName || old.Status.PodIP != "" && old.Status.PodIP != pod.Status.PodIP {
			w.Violate("pod %s has another node or address", pod.Name)
		}
		defer out.watch(w, e, pod)
		if !podstate.HasReadinessGate(pod, contract.InPlaceUpdateReady) || e.Actor != cluster.OperatorActor {
			return
		}
		if names := otherImages(old, pod); len(names) > 0 {
			if changed[pod.UID] == nil {
				changed[pod.UID] = map[string]bool{}
			}
			maps.Copy(changed[pod.UID], names)
			w.checkImages(old, pod, names)
			out.stops(w, old, pod)
		}
		if cluster.IsTrue(pod, contract.InPlaceUpdateReady) && !cluster.IsTrue(old, contract.InPlaceUpdateReady) {
			w.checkRenewed(pod, changed[pod.UID])
		}
	})
}

// checkImages checks one write of images of the containers with the names.
func (w *World) checkImages(old, pod *corev1.Pod, names map[string]bool) {
	if len(names) > 1 && slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return names[c.Name] }) {
		w.Violate("pod %s gets other images for a native sidecar and another container at once", pod.Name)
	}
	if cluster.IsTrue(old, contract.InPlaceUpdateReady) || cluster.IsTrue(pod, contract.InPlaceUpdateReady) {
		w.Violate("pod %s gets another image while InPlaceUpdateReady is True", pod.Name)
	}
}

func (w *World) checkRenewed(pod *corev1.Pod, changed map[string]bool) {
	if !w.Runs(pod.UID) {
		return
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, spec := range podspec.LongRunning(&pod.Spec) {
		shown := slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool {
			return s.Name == spec.Name && w.ImageOf(pod.UID, spec.Name, s.ContainerID) == spec.Image
		})
		if changed[spec.Name] && !shown {
			w.Violate("pod %s becomes ready for service, but container %s was not yet seen with image %s", pod.Name, spec.Name, spec.Image)
		}
	}
}

// otherImages returns the names of the containers that have other images in b than in a.
func otherImages(a, b *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	before := podspec.LongRunning(&a.Spec)
	for i, c := range podspec.LongRunning(&b.Spec) {
		if before[i].Image != c.Image {
			names[c.Name] = true
		}
	}
	return names
}

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
