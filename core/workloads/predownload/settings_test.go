package predownload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
)

func TestTheStrategyWinsOverAnnotations(t *testing.T) {
	annotations := func(parallelism, timeout, enough string) map[string]string {
		return map[string]string{
			contract.ImagePreDownloadParallelismAnnotation: parallelism, contract.ImagePreDownloadTimeoutSecondsAnnotation: timeout,
			contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation: enough,
		}
	}
	strategy := &workload.InPlaceUpdateStrategy{
		ImagePreDownloadParallelism: new(intstr.FromInt32(2)), ImagePreDownloadTimeoutSeconds: new(int32(5)), ImagePreDownloadMinUpdatedReadyPods: new(int32(3)),
	}
	inStrategy := Settings{Parallelism: new(intstr.FromInt32(2)), TimeoutSeconds: new(int32(5)), MinUpdatedReady: 3, Configured: true}
	for name, c := range map[string]struct {
		strategy    *workload.InPlaceUpdateStrategy
		annotations map[string]string
		want        Settings
	}{
		"nothing":           {nil, nil, Settings{}},
		"an empty strategy": {&workload.InPlaceUpdateStrategy{}, nil, Settings{}},
		"a strategy":        {strategy, nil, inStrategy},
		"both":              {strategy, annotations("20%", "60", "1"), inStrategy},
		"percentages":       {nil, annotations("20%", "60", "50%"), Settings{Parallelism: new(intstr.FromString("20%")), TimeoutSeconds: new(int32(60)), MinUpdatedReady: 3, Configured: true}},
		"numbers":           {nil, annotations("4", "60", "1"), Settings{Parallelism: new(intstr.FromInt32(4)), TimeoutSeconds: new(int32(60)), MinUpdatedReady: 1, Configured: true}},
		"no numbers":        {nil, annotations("x", "y", "z%"), Settings{Configured: true}},
		"a half of each":    {&workload.InPlaceUpdateStrategy{ImagePreDownloadTimeoutSeconds: new(int32(5))}, annotations("4", "60", ""), Settings{Parallelism: new(intstr.FromInt32(4)), TimeoutSeconds: new(int32(5)), Configured: true}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, AnnotatedSettings(c.strategy, c.annotations, 5))
		})
	}
}
