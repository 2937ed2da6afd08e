package daemon

import "testing"

func TestMetricsAreForReaders(t *testing.T) {
	world.MetricsAreForReaders(t, "daemon-manager", 8080, 8090)
	world.MetricsAreForReaders(t, "daemon-agent", 10221, 10222)
}
