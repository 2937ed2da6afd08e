package simnodes

import (
	"cmp"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// Defaults of Options.
const (
	DefaultNodes        = 10
	DefaultPrefix       = "sim-"
	DefaultPodsPerNode  = 1000
	DefaultWorkers      = 32
	defaultLeasePeriod  = 10 * time.Second
	defaultCrashBackoff = 10 * time.Second
	// NoLeases as Options.LeasePeriod keeps the nodes from writing leases.
	NoLeases = time.Duration(-1)
)

// Options describe the nodes to simulate. The zero value is ten nodes without any delay.
type Options struct {
	// Nodes is how many nodes to register. Default: DefaultNodes.
	Nodes int
	// Prefix starts every node's name; the node's number, from 0, ends it. Two simulations on one
	// API server need two prefixes. Default: DefaultPrefix.
	Prefix string
	// PodsPerNode is the capacity for pods that each node reports. Default: DefaultPodsPerNode.
	PodsPerNode int
	// Labels, if set, returns further labels of node number i.
	Labels func(i int) map[string]string
	// Taints are on every node; those that admission adds to a new node are removed.
	Taints []corev1.Taint
	// LeasePeriod is the time between two heartbeats of a node. Default: 10 s;
	// NoLeases for none.
	LeasePeriod time.Duration

	// Bind assigns pods without a node to the simulated ones, for API servers without a scheduler.
	Bind bool

	// StartDelay is the time from assignment, or from the end of the previous container after a
	// change, to the start of a container.
	StartDelay time.Duration
	// ReadyDelay is the time from start to ready.
	ReadyDelay time.Duration
	// ResizeDelay is the time from a change of resources to its completion.
	ResizeDelay time.Duration
	// TerminationDelay is the time from deletion to the end of the pod, at most its grace period.
	TerminationDelay time.Duration
	// Jitter lengthens every start and ready delay by a fraction between 0 and Jitter, which
	// depends on Seed and the pod's name alone.
	Jitter float64
	// Seed changes container IDs and what Jitter does.
	Seed int64
	// CrashBackoff is the wait before the second restart of a container that ended by itself; it
	// doubles up to 32 times that. Default: 10 s.
	CrashBackoff time.Duration

	// Images define how containers of an image behave, by the image exactly as pods name it. An image without an entry
	// runs until its pod ends.
	Images map[string]Image

	// Workers is how many writes may be under way at once. Default: DefaultWorkers.
	Workers int
	// Clock defaults to the real one.
	Clock clock.WithTicker
	// Log receives failed writes and what the binder cannot place; nothing when it is the zero value.
	Log logr.Logger
}

// Image defines how containers of one image behave.
type Image struct {
	// SameAs names the image whose content this one has: both get the same image ID.
	SameAs string
	// StartDelay and ReadyDelay come on top of those of Options.
	StartDelay, ReadyDelay time.Duration
	// Silent stops the kubelet from reporting on, and ending, pods that name this image in a container that is not an
	// init container.
	Silent bool
	// PullFails keeps the container waiting with reason ImagePullBackOff.
	PullFails bool
	// NeverReady keeps the container running and not ready.
	NeverReady bool
	// Exits ends the container with ExitCode when ExitAfter has passed since its start; with an
	// ExitAfter of 0 it is never seen running. Restart policy and backoff are the kubelet's.
	// Init containers that are not sidecars end with code 0 at once unless Exits is set.
	Exits     bool
	ExitAfter time.Duration
	ExitCode  int32
	// RefuseResize is the reason, PodReasonDeferred or PodReasonInfeasible, of condition
	// PodResizePending, which a change of resources then gets in place of being carried out.
	RefuseResize string
}

// CrashLoop returns the behaviour of an image whose process fails as soon as it starts.
func CrashLoop() Image { return Image{Exits: true, ExitCode: 1} }

func (o Options) withDefaults() (Options, error) {
	o.Nodes = cmp.Or(o.Nodes, DefaultNodes)
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	o.PodsPerNode = cmp.Or(o.PodsPerNode, DefaultPodsPerNode)
	o.Workers = cmp.Or(o.Workers, DefaultWorkers)
	o.LeasePeriod = cmp.Or(o.LeasePeriod, defaultLeasePeriod)
	o.CrashBackoff = cmp.Or(o.CrashBackoff, defaultCrashBackoff)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Nodes < 0 || o.PodsPerNode < 0 || o.Workers < 0 || o.Jitter < 0 {
		return o, fmt.Errorf("simulate nodes: negative count in options")
	}
	return o, nil
}
