package predownload

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/contract"
)

// The annotations of a set can have any text.
func FuzzAnnotatedSettings(f *testing.F) {
	f.Add("50%", "60", "20%", int32(7))
	f.Add("-1", "99999999999", "1e9%", int32(-1))
	f.Add("%", "x", "%", int32(0))
	f.Fuzz(func(_ *testing.T, parallelism, timeout, ready string, replicas int32) {
		AnnotatedSettings(nil, map[string]string{
			contract.ImagePreDownloadParallelismAnnotation: parallelism, contract.ImagePreDownloadTimeoutSecondsAnnotation: timeout,
			contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation: ready,
		}, replicas)
	})
}
