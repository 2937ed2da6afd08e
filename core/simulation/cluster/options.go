package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Options describe a world. The zero value is a world with three nodes, random delays and events out of order.
type Options struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Calm makes every delay a second, every status complete, and nothing happen out of order.
	Calm bool
	// Begin is the moment at which the world begins; zero is the first of January 2026.
	Begin time.Time
	// Takes says how long each work takes; nil leaves that to chance and to Calm.
	Takes func(Work) time.Duration
	// Nodes is the number of nodes; 0 means 3.
	Nodes int
	// Schedule returns the node of a new pod, or the reason why none takes it; nil chooses any node.
	Schedule func(*World, *corev1.Pod) (node, reason string)
	// Images says how images behave that are not simply good, by their names.
	Images map[string]Image
	// Unschedulable says which pods no node takes; nil takes all.
	Unschedulable func(*corev1.Pod) bool
	// Flaps is the probability that a container that became ready fails its probe once more.
	Flaps float64
	// Admission refuses writes of everybody but the world's own actors, as a webhook would: an error
	// without a status of its own becomes the reason of a Forbidden. It sees Deleted where a deletion is about to begin.
	Admission func(*World, Event) error
	// Mutate changes an object that is about to be created, before the rules and Admission judge it, as a mutating webhook
	// does. It may change Event.Object, which is a copy. Its errors count as those of Admission. Nil changes nothing.
	Mutate func(*World, Event) error
	// Room returns the reason why the node of a running pod cannot give it the resources of its spec, PodReasonInfeasible or
	// PodReasonDeferred, or nothing if it can. Nil compares the cpu of each container with the same amounts on each node.
	Room func(*World, *corev1.Pod) string
	// JudgesResizes has the server refuse resizes to more than a node has, as from Kubernetes 1.36 on.
	JudgesResizes bool
	// Memory is what containers use with images that do not say so themselves.
	Memory resource.Quantity
	// DetectMutation keeps a copy of every object, so that a planner that changes what it reads is
	// found out when the world has settled.
	DetectMutation bool
}

// Work is what a part of the cluster does for a pod, which takes time.
type Work string

// All works that Options.Takes is asked for.
const (
	// Scheduling a pod.
	Scheduling Work = "Scheduling"
	// Noticing a change of a pod, by its kubelet.
	Noticing Work = "Noticing"
	// Creating a container of a new pod, from the binding of the pod to the start of the container. It has the pull of the image.
	Creating Work = "Creating"
	// Restarting a container, from its end to its start.
	Restarting Work = "Restarting"
	// BecomingReady, from the start of a container on.
	BecomingReady Work = "BecomingReady"
	// Crashing, from the start of a container to its end.
	Crashing Work = "Crashing"
	// Resizing a container that runs.
	Resizing Work = "Resizing"
	// Stopping a container, from the signal to its end.
	Stopping Work = "Stopping"
	// Removing a pod, from the end of its containers until it is gone.
	Removing Work = "Removing"
	// Reporting the status of a pod.
	Reporting Work = "Reporting"
)

// Image defines how containers with an image behave. The zero value is a good image.
type Image struct {
	// Digest is what the image resolves to; images with the same digest are two tags of one image.
	// Empty means a digest of its own.
	Digest string
	// PullError keeps the image from being pulled.
	PullError bool
	// CrashLoop lets every container exit soon after its start.
	CrashLoop bool
	// Crashes is how often a container in a crash loop is started again before the back-off is longer than any
	// test; 0 means 4.
	Crashes int32
	// Memory is what a container uses. With a memory limit below that, its own or that of its pod, it is killed soon after
	// its start.
	Memory resource.Quantity
	// NeverReady makes containers run without ever passing their readiness probe.
	NeverReady bool
}

// NodeCPU is the cpu that a node has.
const NodeCPU = 64
