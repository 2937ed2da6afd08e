package endurance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const page = `# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 5.24288e+07
# TYPE go_memstats_heap_alloc_bytes gauge
go_memstats_heap_alloc_bytes 1.048576e+07
# TYPE go_goroutines gauge
go_goroutines 300
# TYPE process_open_fds gauge
process_open_fds 21
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 4.5
# TYPE workqueue_depth gauge
workqueue_depth{name="cloneset"} 2
workqueue_depth{name="certificates"} 1
# TYPE controller_runtime_reconcile_total counter
controller_runtime_reconcile_total{result="success"} 10
controller_runtime_reconcile_total{result="error"} 1
# TYPE took histogram
took_bucket{le="1"} 3
took_bucket{le="+Inf"} 4
took_sum 5
took_count 4
# TYPE pause summary
pause{quantile="0.5"} 1
pause_sum 5
pause_count 4
`

func TestSamplesAreReadFromMetrics(t *testing.T) {
	s, err := parse(strings.NewReader(page))
	require.NoError(t, err)
	assert.Equal(t, Sample{
		MemoryMiB: 50, HeapMiB: 10, Goroutines: 300, Files: 21, Series: 9 + 4 + 3, Queued: 3, CPU: 4.5, Passes: 11,
	}, s)
}

func TestAPageThatIsNoneIsAnError(t *testing.T) {
	_, err := parse(strings.NewReader("{}\n"))
	assert.ErrorContains(t, err, "parse metrics: ")
}
