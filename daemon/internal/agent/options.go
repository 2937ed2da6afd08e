package agent

import (
	"errors"
	"slices"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/process"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

const (
	nodeNameEnv = "NODE_NAME"
	hostIPEnv   = "HOST_IP"
	socketRoot  = "/hostvarrun"
)

// Options are the settings of an agent. Names and defaults of flags are OpenKruise's.
type Options struct {
	// Node is the name of the agent's node.
	Node string
	// HostIP is the address of the node, for hooks of pods in its network; empty if it is not known.
	HostIP string
	// ConfigNamespace is where pull secrets are.
	ConfigNamespace string

	Addr string // ":10221", of metrics and probes
	// MetricsSecure serves Addr by TLS, and metrics to those who may get the path /metrics.
	MetricsSecure bool
	EnablePprof   bool
	PprofAddr     string // "localhost:10222"

	// SocketRoot is the folder of runtimes' sockets, SocketFile the only one to use, relative to it.
	SocketRoot, SocketFile string
	// PluginConfigFile and PluginBinDir are the paths of credential provider plugins.
	PluginConfigFile, PluginBinDir string
	// MaxWorkersForPullImage is how many images are pulled at a time; 0 or less means any number.
	MaxWorkersForPullImage int

	process.Limits

	// Environ is the environment that credential provider plugins get.
	Environ []string
	// Random returns numbers from 0 to 1. It spreads pauses.
	Random func() float64

	// FeatureGates are the feature gates.
	FeatureGates features.Set
	// Log is where the log goes.
	Log logr.Logger
	// Notes are the texts about the settings for the log.
	Notes []string
}

// ReadOptions reads the command line and the environment. pflag.ErrHelp means that help was asked for and
// printed.
func ReadOptions(arguments []string, getenv func(string) string) (Options, error) {
	o := Options{SocketRoot: socketRoot}
	set := pflag.NewFlagSet(Name, pflag.ContinueOnError)
	o.addFlags(set)
	shared := process.AddFlags(set, gates()...)
	if err := set.Parse(arguments); err != nil {
		return o, err
	}
	o.Log = shared.Log()
	return o, o.readEnvironment(shared, getenv)
}

// gates returns the feature gates that an agent reads.
func gates() []features.Gate {
	return slices.DeleteFunc(featuregates.All(), func(g features.Gate) bool {
		return g.Name != featuregates.DaemonWatchingPod && g.Name != features.InPlaceUpdateEnvFromMetadata
	})
}

func (o *Options) addFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Addr, "addr", ":10221", "Address of /metrics, /healthz and /readyz.")
	set.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve that address by HTTPS, and /metrics only to users with permission to get it. If false, serve both by HTTP to everyone.")
	set.BoolVar(&o.EnablePprof, "enable-pprof", false, "Serve profiles for debugging.")
	set.StringVar(&o.PprofAddr, "pprof-addr", "localhost:10222", "Address of the profiles.")
	set.StringVar(&o.SocketFile, "socket-file", "", "The runtime's socket, relative to "+socketRoot+"; by default the usual ones are tried.")
	set.StringVar(&o.PluginConfigFile, "plugin-config-file", "/kruise/CredentialProviderPlugin.yaml", "Configuration of credential provider plugins, as the kubelet's; may be absent.")
	set.StringVar(&o.PluginBinDir, "plugin-bin-dir", "/kruise/plugins", "Folder of the credential provider plugins.")
	set.IntVar(&o.MaxWorkersForPullImage, "max-workers-for-pull-image", -1, "How many images are pulled at a time; 0 or less means any number.")
	o.Limits.AddFlags(set)
}

// readEnvironment completes the settings that flags leave open.
func (o *Options) readEnvironment(shared *process.Flags, getenv func(string) string) (err error) {
	o.FeatureGates, o.Notes, err = shared.FeatureGates(getenv)
	if err != nil {
		return err
	}
	if o.Node = getenv(nodeNameEnv); o.Node == "" {
		return errors.New("not found NODE_NAME in environments")
	}
	o.HostIP = getenv(hostIPEnv)
	if o.ConfigNamespace = getenv(v1beta1.ConfigNamespaceEnv); o.ConfigNamespace == "" {
		o.ConfigNamespace = v1beta1.DefaultConfigNamespace
	}
	return nil
}
