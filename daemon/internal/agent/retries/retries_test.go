package retries_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/retries"
)

func TestNoPauseIsLongerThanAMinute(t *testing.T) {
	limiter, longest := retries.Limiter(), time.Duration(0)
	for range 40 {
		longest = max(longest, limiter.When(ctrl.Request{}))
	}
	assert.Equal(t, 55*time.Second, longest)
}
