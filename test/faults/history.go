package faults

import (
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Pod is the part of a pod that rules look at.
type Pod struct {
	Name string
	UID  types.UID
	// App names the pod's workload, Subset its subset of a WorkloadSpread.
	App, Subset, Node string
	// Labels are all labels, in the order of their keys.
	Labels string
	// Image is the image in the spec of the first container, Runs the image that its kubelet reports; empty before the start.
	Image, Runs string
	// Gate is the status of condition InPlaceUpdateReady; empty without one.
	Gate corev1.ConditionStatus
	// Ready is condition Ready. Leaving means that its deletion was accepted, Over that all containers have ended for good.
	Ready, Leaving, Over bool
	// Failed means that it is over, without success.
	Failed bool
	// Restarts is the restart count of the first container.
	Restarts int32
}

// Job is the part of a Job that rules look at.
type Job struct {
	Name string
	UID  types.UID
	// Active means that it has yet to end.
	Active bool
}

// Moment is the state of a namespace, and of the nodes, after one event of a watch.
type Moment struct {
	At   time.Time
	Pods map[types.UID]Pod
	Jobs map[types.UID]Job
	// Claims are the UIDs of PersistentVolumeClaims by name; a claim with a deletion timestamp is left out.
	Claims map[string]types.UID
	// Closed are nodes that get no new pods because they are not ready or unreachable.
	Closed map[string]bool
}

// History is a list of moments, the oldest first.
type History []Moment

// next returns a copy of the moment, for the state at another time.
func (m Moment) next(at time.Time) Moment {
	return Moment{
		At:     at,
		Pods:   maps.Clone(m.Pods),
		Jobs:   maps.Clone(m.Jobs),
		Claims: maps.Clone(m.Claims),
		Closed: maps.Clone(m.Closed),
	}
}

func emptyMoment() Moment {
	return Moment{
		Pods:   map[types.UID]Pod{},
		Jobs:   map[types.UID]Job{},
		Claims: map[string]types.UID{},
		Closed: map[string]bool{},
	}
}

// isClosed reports whether the node has the taint with which the node controller keeps new pods from a node that is not
// ready. The pods of DaemonSets tolerate taints of nodes that are not ready with effect NoExecute, and not with NoSchedule.
func isClosed(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable)
	})
}

func podOf(o *corev1.Pod) Pod {
	p := Pod{
		Name:    o.Name,
		UID:     o.UID,
		App:     o.Labels["app"],
		Subset:  o.Labels["subset"],
		Labels:  labels.FormatLabels(o.Labels),
		Node:    o.Spec.NodeName,
		Image:   o.Spec.Containers[0].Image,
		Leaving: o.DeletionTimestamp != nil,
		Over:    o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed,
		Failed:  o.Status.Phase == corev1.PodFailed,
	}
	for _, c := range o.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			p.Ready = c.Status == corev1.ConditionTrue
		case contract.InPlaceUpdateReady:
			p.Gate = c.Status
		default:
		}
	}
	for _, c := range o.Status.ContainerStatuses {
		if c.Name == o.Spec.Containers[0].Name && c.State.Running != nil {
			p.Runs = strings.TrimPrefix(c.Image, "docker.io/")
		}
		if c.Name == o.Spec.Containers[0].Name {
			p.Restarts = c.RestartCount
		}
	}
	return p
}

func jobOf(o *batchv1.Job) Job {
	j := Job{Name: o.Name, UID: o.UID, Active: true}
	for _, c := range o.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			j.Active = false
		}
	}
	return j
}
