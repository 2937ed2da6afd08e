package budget

import "testing"

func TestMetricsAreForReaders(t *testing.T) {
	world.MetricsAreForReaders(t, "budget-manager", 8080, 8090)
}
