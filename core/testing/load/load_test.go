package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A request that nobody answers for a while delays none of those after it.
func TestRequestsDoNotWaitForEachOther(t *testing.T) {
	const n, perSecond = 20, 200
	last := make(chan struct{})
	took := Steady(t, perSecond, n, func(i int) error {
		switch i {
		case 0:
			<-last
		case n - 1:
			close(last)
		}
		return nil
	})
	assert.Len(t, took, n)
	assert.GreaterOrEqual(t, took[0], (n-1)*time.Second/perSecond)
}

func TestPercentiles(t *testing.T) {
	var took Times
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i))
	}
	assert.Equal(t, time.Duration(51), took.Within(50))
	assert.Equal(t, time.Duration(100), took.Within(99))
	assert.Equal(t, time.Duration(100), took.Within(100))
	assert.Zero(t, Times{}.Within(99))
}
