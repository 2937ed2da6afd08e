package manager

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// version is the version of the build; release builds set it with -ldflags "-X <this package>.version=v1.2.3".
var version string

// leaderGauge returns a gauge that is 1 while this replica is the leader. The name is OpenKruise's.
func leaderGauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kruise_manager_is_leader",
		Help: "1 while this replica is the leader, 0 otherwise; the name is OpenKruise's.",
	})
}

// buildInfo returns a gauge that is always 1; its labels are the versions.
func buildInfo(feature string) prometheus.Gauge {
	built, revision := version, "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if built == "" {
			built = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "flotilla_build_info",
		Help: "Always 1; the labels show the build of the operator.",
		ConstLabels: prometheus.Labels{
			"feature":    feature,
			"version":    built,
			"revision":   revision,
			"go_version": runtime.Version(),
		},
	})
	gauge.Set(1)
	return gauge
}

// register registers collectors until unregister is called, so that two operators in one process can run one after the
// other.
func register(registry prometheus.Registerer, collectors ...prometheus.Collector) (unregister func(), err error) {
	var registered []prometheus.Collector
	unregister = func() {
		for _, collector := range registered {
			registry.Unregister(collector)
		}
	}
	for _, collector := range collectors {
		if err := registry.Register(collector); err != nil {
			unregister()
			return nil, err
		}
		registered = append(registered, collector)
	}
	return unregister, nil
}
