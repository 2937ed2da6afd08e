package forecast_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
)

func TestTheTimeThatIsLeft(t *testing.T) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	report := func(phase progress.Phase) *forecast.Report {
		r := &forecast.Report{Phase: phase, Seconds: 120}
		for i := range 6 {
			r.Batches = append(r.Batches, forecast.Batch{Seconds: float64(20 * i), InPlace: 2})
		}
		return r
	}
	for name, c := range map[string]struct {
		phase   progress.Phase
		taken   time.Duration
		updated int
		want    time.Duration
		known   bool
	}{
		"as foretold":                    {progress.Complete, 40 * time.Second, 3 + 6, 80 * time.Second, true},
		"a little later":                 {progress.Complete, 47 * time.Second, 3 + 6, 80 * time.Second, true},
		"much later":                     {progress.Complete, 70 * time.Second, 3 + 6, 0, false},
		"the first batch proves nothing": {progress.Complete, time.Second, 3 + 2, 0, false},
		"the last batch has begun":       {progress.Complete, 100 * time.Second, 3 + 12, 20 * time.Second, true},
		"a rollout that cannot end":      {progress.Failed, 40 * time.Second, 3 + 6, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			left, known := forecast.NewCourse(report(c.phase), began, 3).Left(began.Add(c.taken), c.updated)
			assert.Equal(t, c.known, known)
			assert.Equal(t, c.want, left)
		})
	}
	_, known := (*forecast.Course)(nil).Left(began, 3)
	assert.False(t, known, "without a forecast")
}
