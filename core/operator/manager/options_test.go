package manager

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/process"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestParseDefaults(t *testing.T) {
	parsed, err := parse(Operator{Feature: "cloneset"}, nil, environment(nil))
	require.NoError(t, err)
	assert.Empty(t, parsed.notes)
	options := parsed.Options
	assert.Equal(t, ":8080", options.MetricsAddr)
	assert.Equal(t, ":8000", options.HealthProbeAddr)
	assert.True(t, options.EnablePprof)
	assert.Equal(t, "localhost:8090", options.PprofAddr, "profiles are for those who can enter the pod")
	assert.True(t, options.MetricsSecure)
	assert.Empty(t, options.WebhookClientCAFile)
	assert.Equal(t, Election{
		Enabled: true, Namespace: "flotilla-system", ID: "cloneset-manager",
		LeaseDuration: 15 * time.Second, RenewDeadline: 7 * time.Second, RetryPeriod: 2 * time.Second,
	}, options.LeaderElection)
	assert.Equal(t, 4*time.Second, options.LeaderElection.writeLimit())
	assert.Zero(t, options.QPS)
	assert.Equal(t, 2*time.Minute, options.CacheSyncTimeout)
	assert.Equal(t, time.Minute, options.WebhookInitializeTimeout)
	assert.Equal(t, 5*time.Second, options.WebhookLameDuck)
	assert.True(t, options.AllowPrivileged)
	assert.Equal(t, features.Defaults(), options.FeatureGates)
	assert.Equal(t, "cloneset-webhook-certs", options.Certificates.SecretName)
	assert.Equal(t, "cloneset-webhook", options.Certificates.ServiceName)
}

func TestParseReadsFlagsAndEnvironment(t *testing.T) {
	workers := 0
	operator := Operator{
		Feature:      "cloneset",
		FeatureGates: []features.Gate{{Name: "CloneSetShortHash"}},
		Flags:        func(set *pflag.FlagSet) { set.IntVar(&workers, "cloneset-workers", 3, "") },
	}
	parsed, err := parse(operator, []string{
		"--feature-gates=CloneSetShortHash=true,DaemonSetPruneIneligibleNodes=true", "--cloneset-workers=7", "--rest-config-qps=30", "--rest-config-burst=50",
		"--rate-limiter-base-delay=1s", "--rate-limiter-max-delay=1m", "--rate-limiter-qps=20", "--rate-limiter-bucket-size=200",
		"--expectation-timeout=1m", "--logtostderr", "--leader-election-resource-lock=configmaps", "--zap-log-level=debug",
	}, environment(map[string]string{"POD_NAMESPACE": "kruise-system", "WEBHOOK_CERT_DIR": "somewhere"}))
	require.NoError(t, err)
	assert.Equal(t, 7, workers)
	assert.True(t, parsed.FeatureGates.Enabled("CloneSetShortHash"))
	assert.InDelta(t, 30, parsed.QPS, 0)
	retries := pass.Retries{BaseDelay: time.Second, MaxDelay: time.Minute, QPS: 20, BucketSize: 200}
	assert.Equal(t, retries, parsed.Retries)
	assert.Equal(t, retries, (&Environment{Options: parsed.Options}).Settings("cloneset", 0).Retries)
	assert.Equal(t, "kruise-system", parsed.LeaderElection.Namespace, "the Lease lives where the operator lives")
	assert.True(t, parsed.log.V(1).Enabled())
	assert.ElementsMatch(t, []string{
		"flag --expectation-timeout is accepted and ignored",
		"flag --logtostderr is accepted and ignored",
		"flag --leader-election-resource-lock=configmaps is ignored: the lock is a Lease",
		"feature gate DaemonSetPruneIneligibleNodes is not used by this operator and is ignored",
		"WEBHOOK_CERT_DIR is ignored: certificates are kept in memory only",
	}, parsed.notes)
}

func TestParseMapsVerbosityOfKlog(t *testing.T) {
	for _, argument := range []string{"--v=4", "-v=4"} {
		parsed, err := parse(Operator{Feature: "cloneset"}, []string{argument}, environment(nil))
		require.NoError(t, err, argument)
		assert.True(t, parsed.log.V(4).Enabled(), argument)
		assert.False(t, parsed.log.V(5).Enabled(), argument)
	}
}

func TestParseRefuses(t *testing.T) {
	for want, arguments := range map[string][]string{
		"NoSuchGate":   {"--feature-gates=NoSuchGate=true"},
		"no-such-flag": {"--no-such-flag"},
	} {
		_, err := parse(Operator{Feature: "cloneset"}, arguments, environment(nil))
		require.ErrorContains(t, err, want)
	}
	_, err := parse(Operator{Feature: "cloneset"}, nil, environment(map[string]string{"WEBHOOK_PORT": "x"}))
	assert.ErrorContains(t, err, "WEBHOOK_PORT")
}

func TestRepeatedFeatureGatesAddUp(t *testing.T) {
	options, err := ReadOptions(Operator{Feature: "cloneset", FeatureGates: append(features.Shared(features.KruiseDaemon), features.Gate{Name: "CloneSetShortHash"})}, []string{
		"--feature-gates=CloneSetShortHash=true,PreparingUpdateAsUpdate=true", "--feature-gates=KruiseDaemon=false",
	}, func(string) string { return "" })
	require.NoError(t, err)
	assert.True(t, options.FeatureGates.Enabled("CloneSetShortHash"))
	assert.True(t, options.FeatureGates.Enabled(features.PreparingUpdateAsUpdate))
	assert.False(t, options.FeatureGates.Enabled(features.KruiseDaemon))
}

// Writes end before another leader may look at the world, and are given some time whatever the settings.
func TestWritesEndBetweenTwoLeaders(t *testing.T) {
	for name, c := range map[string]struct {
		election Election
		want     time.Duration
	}{
		"default":            {Election{LeaseDuration: 15 * time.Second, RenewDeadline: 7 * time.Second, RetryPeriod: 2 * time.Second}, 4 * time.Second},
		"longer":             {Election{LeaseDuration: 60 * time.Second, RenewDeadline: 40 * time.Second, RetryPeriod: 5 * time.Second}, 14 * time.Second * 4 / 5},
		"no time in between": {Election{LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second}, shortestLimit},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, c.election.writeLimit())
		})
	}
}

func TestFlagsSayWhereMetricsAndProfilesAreServed(t *testing.T) {
	metrics, profiles := &process.Endpoint{Address: ":8080", Secure: true}, &process.Endpoint{Address: "localhost:8090"}
	for flags, want := range map[string]struct{ metrics, profiles *process.Endpoint }{
		"":                       {metrics, profiles},
		"--metrics-addr=":        {metrics, profiles},
		"--metrics-addr=0":       {nil, profiles},
		"--metrics-addr=:1":      {&process.Endpoint{Address: ":1", Secure: true}, profiles},
		"--metrics-secure=false": {&process.Endpoint{Address: ":8080"}, profiles},
		"--enable-pprof=false":   {metrics, nil},
		"--pprof-addr=":          {metrics, nil},
		"--pprof-addr=0":         {metrics, nil},
		"--pprof-addr=:1":        {metrics, &process.Endpoint{Address: ":1"}},
	} {
		t.Run(flags, func(t *testing.T) {
			o, err := ReadOptions(Operator{Feature: "cloneset"}, strings.Fields(flags), environment(nil))
			require.NoError(t, err)
			metrics, profiles := o.endpoints()
			assert.Equal(t, want.metrics, metrics)
			assert.Equal(t, want.profiles, profiles)
		})
	}
}
