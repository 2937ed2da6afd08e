package judges

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// restarts are what operators have asked of agents by contract.RestartInPlaceAnnotation.
type restarts struct {
	world *World
	began map[types.UID]map[string]string // the IDs of all containers when the last update began, by name
	due   map[types.UID]map[string]string // of those that must go
	done  map[podContainer]string         // the IDs of those that agents have stopped since the last change of the annotation
}

type podContainer struct {
	pod       types.UID
	container string
}

func newRestarts(w *World) restarts {
	return restarts{
		world: w,
		began: map[types.UID]map[string]string{},
		due:   map[types.UID]map[string]string{},
		done:  map[podContainer]string{},
	}
}

// count requires that one change of the annotation stops a container once.
func (r *restarts) count(pod *corev1.Pod, container, id string) {
	key := podContainer{pod.UID, container}
	if before, twice := r.done[key]; twice {
		r.world.Violate("container %s of pod %s is restarted as %s and as %s for one change of the template", container, pod.Name, before, id)
	}
	r.done[key] = id
}

// watch requires of a write of the operator that takes a pod back into service that the containers which the annotation
// names run anew.
func (r *restarts) watch(old, pod *corev1.Pod, back bool) {
	r.inOrder(old, pod)
	if old.Labels[contract.RevisionLabel] != pod.Labels[contract.RevisionLabel] {
		r.began[pod.UID] = containerIDs(old)
	}
	if value := pod.Annotations[contract.RestartInPlaceAnnotation]; value != old.Annotations[contract.RestartInPlaceAnnotation] {
		maps.DeleteFunc(r.done, func(c podContainer, _ string) bool { return c.pod == pod.UID })
		r.due[pod.UID] = namedForRestart(r.began[pod.UID], value)
	}
	if !back || restartsToCome(pod) {
		return
	}
	for _, name := range r.notRestarted(pod) {
		r.world.Violate("pod %s comes back into service, but container %s has not been restarted", pod.Name, name)
	}
	delete(r.due, pod.UID)
}

// restartsToCome reports whether the pod serves in the middle of an update that has yet to write restarts, of its next batch
// or of the first one of its plan.
func restartsToCome(pod *corev1.Pod) bool {
	return strings.Contains(pod.Annotations[contract.InPlaceUpdateStateAnnotation], `"nextContainerRestarts`) ||
		strings.Contains(pod.Annotations[contract.InPlaceUpdateGraceAnnotation], `"containerRestarts`)
}

// inOrder requires of a write that asks for restarts that no native sidecar before them is being restarted.
func (r *restarts) inOrder(old, pod *corev1.Pod) {
	before := record.RestartsUnderWay(old)
	asked := record.RestartsUnderWay(pod)
	sidecar := ""
	for _, c := range podspec.LongRunning(&pod.Spec) {
		id, is := asked[c.Name]
		if is && before[c.Name] != id && sidecar != "" {
			r.world.Violate("container %s of pod %s is to be restarted while native sidecar %s is", c.Name, pod.Name, sidecar)
		}
		if is && podspec.IsSidecar(c) {
			sidecar = c.Name
		}
	}
}

// containerIDs returns the IDs of the containers and native sidecars that were started, by name.
func containerIDs(pod *corev1.Pod) map[string]string {
	ids := map[string]string{}
	for _, s := range longRunning(pod) {
		if s.ContainerID != "" {
			ids[s.Name] = s.ContainerID
		}
	}
	return ids
}

// namedForRestart returns those of the containers that the value names.
func namedForRestart(ids map[string]string, value string) map[string]string {
	names, ok := diff.ParseRestart(value)
	named := maps.Clone(ids)
	maps.DeleteFunc(named, func(name, _ string) bool { return !ok || len(names) > 0 && !slices.Contains(names, name) })
	return named
}

// longRunning returns the statuses of containers and of native sidecars; kubelets of simulated worlds report no others.
func longRunning(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

func (r *restarts) notRestarted(pod *corev1.Pod) []string {
	var names []string
	for _, s := range longRunning(pod) {
		if id, due := r.due[pod.UID][s.Name]; due && s.ContainerID == id {
			names = append(names, s.Name)
		}
	}
	return names
}

// left lists the containers of active pods that have not been restarted.
func (r *restarts) left() []string {
	var all []string
	for _, pod := range r.world.Pods() {
		if !podstate.Of(pod, r.world.Now(), 0).Active {
			continue
		}
		for _, name := range r.notRestarted(pod) {
			all = append(all, "container "+name+" of pod "+pod.Name+" has not been restarted")
		}
	}
	return all
}
