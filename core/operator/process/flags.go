package process

import (
	"flag"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/flotilla-project/flotilla/core/operator/features"
)

// Flags are the flags of every process. Their values are set once the flags are parsed.
type Flags struct {
	set       *pflag.FlagSet
	consulted []features.Gate
	gates     *[]string
	logs      ctrlzap.Options
	verbosity *int8
}

// AddFlags adds --feature-gates, --kubeconfig, -v and the flags of zap. gates are the feature gates that the process
// reads.
func AddFlags(set *pflag.FlagSet, gates ...features.Gate) *Flags {
	f := &Flags{
		set:       set,
		consulted: gates,
		gates:     set.StringSlice("feature-gates", nil, features.Help(gates...)),
	}
	native := flag.NewFlagSet(set.Name(), flag.ContinueOnError)
	f.logs.BindFlags(native)
	ctrlconfig.RegisterFlags(native)
	set.AddGoFlagSet(native)
	f.verbosity = set.Int8P("v", "v", 0, "Verbosity of the log, as in zap-log-level.")
	return f
}

// Log returns the logger.
func (f *Flags) Log() logr.Logger {
	if *f.verbosity > 0 && !f.set.Changed("zap-log-level") {
		level := zap.NewAtomicLevelAt(zapcore.Level(-*f.verbosity))
		f.logs.Level = &level
	}
	return ctrlzap.New(ctrlzap.UseFlagOptions(&f.logs))
}

// FeatureGates returns the feature gates set by the flag and the environment, and notes about them for the log.
func (f *Flags) FeatureGates(getenv func(string) string) (gates features.Set, notes []string, err error) {
	return features.Parse(features.Source{
		Flag:   strings.Join(*f.gates, ","),
		Getenv: getenv,
		Gates:  f.consulted,
	})
}
