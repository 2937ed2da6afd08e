package manager

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/internal/operator/certs"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/process"
)

// defaultNamespace is the default namespace of operators.
const defaultNamespace = "flotilla-system"

const (
	defaultMetricsAddr = ":8080"
	// noAddress as the address of metrics or profiles switches them off.
	noAddress = "0"
)

// Options are the settings of a process. Names of flags are OpenKruise's, and so are defaults with these exceptions:
// the renew deadline is 3 s shorter, so that the leader's writes have time to end before the next one starts; requests
// are not limited here; metrics are served to authorized clients only, and profiles on localhost.
type Options struct {
	MetricsAddr string // ":8080"; "0" switches metrics off
	// MetricsSecure serves metrics over TLS, to clients that may get the path /metrics.
	MetricsSecure   bool
	HealthProbeAddr string // ":8000"
	EnablePprof     bool
	PprofAddr       string // "localhost:8090"

	// WebhookClientCAFile has the CA of the client certificates that clients of admission webhooks must send. Empty
	// means that every client may call.
	WebhookClientCAFile string
	// WebhookClientNames are the accepted common names of those certificates. Empty means all.
	WebhookClientNames []string

	LeaderElection Election

	// Namespace restricts the operator to one namespace. Empty means all.
	Namespace string
	// SyncPeriod is the resync period of informers. Zero means never.
	SyncPeriod time.Duration
	// CacheSyncTimeout is how long a controller waits for its caches to sync.
	CacheSyncTimeout time.Duration
	// WebhookInitializeTimeout is how long the process waits for the certificates at the start.
	WebhookInitializeTimeout time.Duration
	// WebhookLameDuck is how long webhooks are answered after the process was asked to end.
	WebhookLameDuck time.Duration
	process.Limits
	// Retries is how soon controllers repeat passes that have failed.
	Retries pass.Retries

	// DisableNoDeepCopy makes lists from the cache return deep copies.
	DisableNoDeepCopy bool
	// AllowPrivileged accepts privileged containers in templates.
	AllowPrivileged bool

	// BoundGarbage tunes the garbage collector. The environment variable GOGC overrides it.
	BoundGarbage bool

	// FeatureGates are the feature gates.
	FeatureGates features.Set
	// Certificates are the names of the Secret and the webhook server.
	Certificates certs.Settings
}

// endpoints returns where metrics and profiles are served, nil for nowhere.
func (o *Options) endpoints() (metrics, profiles *process.Endpoint) {
	if o.MetricsAddr != noAddress {
		metrics = &process.Endpoint{Address: cmp.Or(o.MetricsAddr, defaultMetricsAddr), Secure: o.MetricsSecure}
	}
	if o.EnablePprof && o.PprofAddr != "" && o.PprofAddr != noAddress {
		profiles = &process.Endpoint{Address: o.PprofAddr}
	}
	return metrics, profiles
}

// Election are the settings of leader election.
type Election struct {
	Enabled       bool
	Namespace     string
	ID            string
	LeaseDuration time.Duration // when others may take over, from the last renewal on
	RenewDeadline time.Duration // how long the leader tries to renew before it gives up
	RetryPeriod   time.Duration
}

// ReadOptions returns the options for a command line and an environment, as Main reads them. It is for programs that
// call Run themselves.
func ReadOptions(operator Operator, arguments []string, getenv func(string) string) (Options, error) {
	parsed, err := parse(operator, arguments, getenv)
	return parsed.Options, err
}

// parsed has the settings of the command line and the environment.
type parsed struct {
	Options
	log   logr.Logger
	notes []string
}

// parse parses arguments and environment. The error is pflag.ErrHelp if help was asked for and printed.
func parse(operator Operator, arguments []string, getenv func(string) string) (parsed, error) {
	set := pflag.NewFlagSet(operator.name(), pflag.ContinueOnError)
	var out parsed
	out.addFlags(set, operator)
	shared := process.AddFlags(set, operator.FeatureGates...)
	ignored := addIgnored(set)
	if operator.Flags != nil {
		operator.Flags(set)
	}
	if err := set.Parse(arguments); err != nil {
		return out, err
	}
	out.log = shared.Log()
	out.notes = append(out.notes, ignored(set)...)
	return out, out.readEnvironment(operator, shared, getenv)
}

// readEnvironment sets the settings that flags leave open.
func (p *parsed) readEnvironment(operator Operator, shared *process.Flags, getenv func(string) string) error {
	set, notes, err := shared.FeatureGates(getenv)
	if err != nil {
		return err
	}
	p.FeatureGates = set
	p.notes = append(p.notes, notes...)
	p.BoundGarbage = getenv("GOGC") == ""

	p.Certificates, notes, err = certs.ReadSettings(operator.Feature, defaultNamespace, getenv)
	if err != nil {
		return err
	}
	p.notes = append(p.notes, notes...)
	if p.LeaderElection.Namespace == "" {
		p.LeaderElection.Namespace = p.Certificates.Namespace
	}
	return nil
}

func (o *Options) addFlags(set *pflag.FlagSet, operator Operator) {
	set.StringVar(&o.MetricsAddr, "metrics-addr", defaultMetricsAddr, "Address of the metrics; 0 disables them.")
	set.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics by HTTPS to clients with permission to get /metrics; otherwise by HTTP to every client.")
	set.StringVar(&o.HealthProbeAddr, "health-probe-addr", ":8000", "Address of /healthz and /readyz.")
	set.BoolVar(&o.EnablePprof, "enable-pprof", true, "Serve profiles for debugging.")
	set.StringVar(&o.PprofAddr, "pprof-addr", "localhost:8090", "Address of the profiles. Every client that reaches it can read them.")

	election := &o.LeaderElection
	set.BoolVar(&election.Enabled, "enable-leader-election", true, "Let one replica at a time run the controllers.")
	set.StringVar(&election.Namespace, "leader-election-namespace", "", "Namespace of the Lease; the operator's own by default.")
	set.StringVar(&election.ID, "leader-election-id", operator.name(), "Name of the Lease.")
	set.DurationVar(&election.LeaseDuration, "leader-election-lease-duration", 15*time.Second, "Time after the last renewal until another replica takes over.")
	set.DurationVar(&election.RenewDeadline, "leader-election-renew-deadline", 7*time.Second, "Time of failed renewals after which the leader gives up.")
	set.DurationVar(&election.RetryPeriod, "leader-election-retry-period", 2*time.Second, "Pause between attempts to get or renew the Lease.")

	set.StringVar(&o.WebhookClientCAFile, "webhook-client-ca-file", "", "CA of the client certificates that callers of admission webhooks must present; empty means that every client may call.")
	set.StringSliceVar(&o.WebhookClientNames, "webhook-client-names", nil, "Common names that these certificates may have; empty means any name.")

	set.StringVar(&o.Namespace, "namespace", "", "Restrict the operator to one namespace.")
	set.DurationVar(&o.SyncPeriod, "sync-period", 0, "Interval after which all cached objects are reconciled again; 0 means never.")
	set.DurationVar(&o.CacheSyncTimeout, "controller-cache-sync-timeout", 2*time.Minute, "How long a controller waits for its caches.")
	set.DurationVar(&o.WebhookInitializeTimeout, "webhook-initialize-timeout", 60*time.Second, "How long the operator waits for its webhook certificates at the start.")
	set.DurationVar(&o.WebhookLameDuck, "webhook-lame-duck", 5*time.Second, "How long webhooks are still served after SIGTERM, until the API server calls other replicas.")
	o.Limits.AddFlags(set)
	set.DurationVar(&o.Retries.BaseDelay, "rate-limiter-base-delay", 0, "Pause after the first failed reconcile of an object. It doubles with each further failure; 0 means 5ms.")
	set.DurationVar(&o.Retries.MaxDelay, "rate-limiter-max-delay", 0, "Longest pause after failed reconciles of an object; 0 means 1000s.")
	set.Float64Var(&o.Retries.QPS, "rate-limiter-qps", 0, "Failed reconciles that a controller repeats per second, with rate-limiter-bucket-size; 0 means unlimited.")
	set.IntVar(&o.Retries.BucketSize, "rate-limiter-bucket-size", 0, "Burst of failed reconciles that a controller repeats, with rate-limiter-qps.")
	set.BoolVar(&o.DisableNoDeepCopy, "disable-no-deepcopy", false, "Copy every object that is listed from the cache.")
	set.BoolVar(&o.AllowPrivileged, "allow-privileged", true, "Accept privileged containers in pod templates.")
}

// addIgnored declares flags of OpenKruise that have no effect here. It returns a function that lists those that were
// given.
func addIgnored(set *pflag.FlagSet) func(*pflag.FlagSet) []string {
	lock := set.String("leader-election-resource-lock", resourcelock.LeasesResourceLock, "Only leases are supported.")
	set.Duration("expectation-timeout", 5*time.Minute, "Ignored: the operator works without expectations.")
	set.Bool("logtostderr", true, "Ignored: logs go to standard error.")

	return func(given *pflag.FlagSet) []string {
		var notes []string
		for _, name := range []string{"expectation-timeout", "logtostderr"} {
			if given.Changed(name) {
				notes = append(notes, fmt.Sprintf("flag --%s is accepted and ignored", name))
			}
		}
		if !strings.EqualFold(*lock, resourcelock.LeasesResourceLock) {
			notes = append(notes, fmt.Sprintf("flag --leader-election-resource-lock=%s is ignored: the lock is a Lease", *lock))
		}
		return notes
	}
}
