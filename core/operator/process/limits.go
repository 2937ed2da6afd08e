package process

import (
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// Limits limit the rate of requests to the API server. Zero or less means no limit: the API server has priority and
// fairness.
type Limits struct {
	// QPS is how many requests are sent a second.
	QPS float32
	// Burst is how many are sent at once; it counts only together with QPS.
	Burst int
}

// AddFlags adds --rest-config-qps and --rest-config-burst.
func (l *Limits) AddFlags(set *pflag.FlagSet) {
	set.Float32Var(&l.QPS, "rest-config-qps", 0, "Requests per second to the API server; 0 means unlimited.")
	set.IntVar(&l.Burst, "rest-config-burst", 0, "Burst of requests to the API server, with rest-config-qps.")
}

// Limit returns a copy of the configuration with the limits.
func (l Limits) Limit(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	if l.QPS > 0 {
		config.QPS = l.QPS
		config.Burst = max(l.Burst, int(l.QPS), 1)
	}
	return config
}
