package cluster

import (
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
	// DefaultName is the cluster that is meant when no name is given.
	DefaultName = "flotilla"
	// DefaultKubernetes is the release that is built when none is asked for.
	DefaultKubernetes = "1.36.3"
	// DefaultNodes is the number of nodes when none is asked for.
	DefaultNodes = 3
	// MaxNodes is the most nodes that the address plan has room for.
	MaxNodes = 200
	// CacheVariable names the environment variable that moves the cache folder.
	CacheVariable = "FLOTILLA_CACHE"

	defaultAPIPort      = 7443
	defaultRegistryPort = 7500
	defaultTimeout      = 3 * time.Minute
)

// SimulatedNodes runs count simulated nodes against the API server that config reaches, until the context ends.
type SimulatedNodes func(ctx context.Context, config *rest.Config, count int) error

// Options say which cluster to start. The zero value is a good choice of each.
type Options struct {
	// Name tells clusters apart that live side by side: lower case letters, digits and dashes, at most 20. Default:
	// DefaultName.
	Name string
	// Kubernetes is the release without a leading v, such as "1.36.3". Default: DefaultKubernetes.
	Kubernetes string
	// Nodes is how many nodes to start, 1 to MaxNodes for real ones. Default: DefaultNodes; use NoNodes for none.
	Nodes int
	// Cache is the folder of binaries and of the clusters' state. Default: the environment variable CacheVariable, else
	// flotilla in the user's cache folder.
	Cache string
	// APIPort and RegistryPort are ports on 127.0.0.1 that reach the API server and the registry. Default: 7443 and
	// 7500 where they are free, else any free port.
	APIPort, RegistryPort int
	// HostPorts are ports on the control plane's loopback that lead to the same port on this machine's, so that an
	// operator run as a plain process can serve webhooks by the URL https://127.0.0.1:PORT/.
	HostPorts []int
	// Simulated starts the control plane alone, as plain processes on loopback. It needs neither root nor Linux.
	Simulated bool
	// SimulatedNodes, if set, runs the nodes of a simulated cluster for as long as the context given to Start lives.
	// The command's own clusters run theirs in the supervisor instead.
	SimulatedNodes SimulatedNodes
	// Database is a folder that DownKeeping made: the cluster starts with a copy of that database in place of an empty
	// one. Certificates and addresses are its own all the same.
	Database string
	// BuildRunc builds runc from its Go module even where the machine has one. Such a runc knows no seccomp: pods'
	// profiles are dropped.
	BuildRunc bool
	// Timeout bounds the wait for readiness, builds excluded. Default: 3 minutes.
	Timeout time.Duration
	// Out receives progress, one line a step. Default: discarded.
	Out io.Writer
}

// NoNodes as Options.Nodes asks for a control plane without nodes.
const NoNodes = -1

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?$`)

// complete fills in defaults and refuses what cannot work.
func (o Options) complete() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Kubernetes == "" {
		o.Kubernetes = DefaultKubernetes
	}
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
	if o.Nodes != NoNodes && (o.Nodes < 0 || o.Nodes > MaxNodes && !o.Simulated) {
		return o, fmt.Errorf("%d nodes: want 1 to %d", o.Nodes, MaxNodes)
	}
	cache, err := CacheFolder(o.Cache)
	o.Cache = cache
	return o, err
}

// nodeCount returns Nodes with NoNodes read as zero.
func (o Options) nodeCount() int { return max(o.Nodes, 0) }

// CacheFolder returns the absolute path of the folder that holds binaries and the clusters' state: the one given, else
// that of the environment variable CacheVariable, else flotilla below the user's cache folder.
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
