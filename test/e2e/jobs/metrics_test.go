package jobs

import "testing"

func TestMetricsAreForReaders(t *testing.T) {
	world.MetricsAreForReaders(t, "jobs-manager", 8080, 8090)
}
