package spread

import "testing"

func TestMetricsAreForReaders(t *testing.T) {
	world.MetricsAreForReaders(t, "spread-manager", 8080, 8090)
}
