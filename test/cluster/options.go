package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// DefaultName is the name of a cluster if none is given.
	DefaultName = "flotilla"
	// DefaultKubernetes is the release if none is given.
	DefaultKubernetes = "1.37.2"
	// DefaultNodes is the number of nodes if none is given.
	DefaultNodes = 3
	// maxNodes is the maximum number of nodes in the address plan.
	maxNodes = 200
	// CacheVariable is the environment variable with the cache folder.
	CacheVariable = "FLOTILLA_CACHE"
	// KubernetesVariable is the environment variable with the release.
	KubernetesVariable = "FLOTILLA_KUBERNETES"

	defaultAPIPort      = 7443
	defaultRegistryPort = 7500
	defaultTimeout      = 3 * time.Minute
)

// SimulatedNodes runs count simulated nodes on the API server of config, until the context ends.
type SimulatedNodes func(ctx context.Context, config *rest.Config, count int) error

// Options describe the cluster to start. The zero value has useful defaults.
type Options struct {
	// Name identifies the cluster on the machine: lower case letters, digits and dashes, at most 20. Default:
	// DefaultName.
	Name string
	// Kubernetes is the release without a leading v, such as "1.37.2". Default: the environment variable
	// KubernetesVariable, else DefaultKubernetes.
	Kubernetes string
	// Nodes is the number of nodes, 1 to 200 for real ones. Default: DefaultNodes; use NoNodes for none.
	Nodes int
	// Cache is the folder of binaries and of the clusters' state. Default: the environment variable CacheVariable, else
	// flotilla in the user's cache folder.
	Cache string
	// APIPort and RegistryPort are the ports of the API server and the registry on 127.0.0.1. Default: 7443 and 7500
	// where they are free, else any free port.
	APIPort, RegistryPort int
	// HostPorts are ports on the control plane's loopback that lead to the same port on this machine's, so that an
	// operator run as a plain process can serve webhooks by the URL https://127.0.0.1:PORT/.
	HostPorts []int
	// NodeGrace is for how long a node may be silent before it counts as not ready; 0 for the default of Kubernetes, 50 s.
	NodeGrace time.Duration
	// Simulated starts the control plane alone, as plain processes on loopback. It needs neither root nor Linux.
	Simulated bool
	// SimulatedNodes, if set, runs the nodes of a simulated cluster until the context of Start ends. Clusters that the
	// command starts run theirs in the supervisor instead.
	SimulatedNodes SimulatedNodes
	// Database is a folder from DownKeeping. The cluster starts with a copy of that database instead of an empty one,
	// but with its own certificates and addresses.
	Database string
	// BuildRunc builds runc from its Go module even if the machine has one. It does not support seccomp: the profiles
	// of pods are dropped.
	BuildRunc bool
	// Timeout bounds the wait for readiness, builds excluded. Default: 3 minutes.
	Timeout time.Duration
	// Out receives progress, one line a step. Default: discarded.
	Out io.Writer
}

// NoNodes is the value of Options.Nodes for a control plane without nodes.
const NoNodes = -1

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$`)

// complete sets defaults and validates the options.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	o.Kubernetes = cmp.Or(o.Kubernetes, os.Getenv(KubernetesVariable), DefaultKubernetes)
	if o.Nodes == 0 {
		o.Nodes = DefaultNodes
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if !validName.MatchString(o.Name) {
		return o, fmt.Errorf("cluster name %q: want at most 20 lower case letters, digits and dashes", o.Name)
	}
	if o.Nodes != NoNodes && (o.Nodes < 0 || o.Nodes > maxNodes && !o.Simulated) {
		return o, fmt.Errorf("%d nodes: want 1 to %d", o.Nodes, maxNodes)
	}
	cache, err := CacheFolder(o.Cache)
	o.Cache = cache
	return o, err
}

// nodeCount returns Nodes with NoNodes read as zero.
func (o Options) nodeCount() int { return max(o.Nodes, 0) }

// CacheFolder returns the absolute path of the folder of binaries and of the clusters' state: given if it is not empty,
// else the value of the environment variable CacheVariable, else flotilla below the user's cache folder.
func CacheFolder(given string) (string, error) {
	if given == "" {
		given = os.Getenv(CacheVariable)
	}
	if given == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find a cache folder (set %s to choose one): %w", CacheVariable, err)
		}
		given = filepath.Join(user, "flotilla")
	}
	return filepath.Abs(given)
}
