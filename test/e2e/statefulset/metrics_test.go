package statefulset

import "testing"

func TestMetricsAreForReaders(t *testing.T) {
	world.MetricsAreForReaders(t, "statefulset-manager", 8080, 8090)
}
