package forecast

import (
	"math"
	"time"
)

const (
	// tolerance is how far a rollout may be from its forecast, as a share of the time so far.
	tolerance = 0.2
	// slack is a difference that does not count: times of pods have whole seconds.
	slack = 2 * time.Second
)

// Course compares a rollout with its forecast.
type Course struct {
	report  *Report
	began   time.Time
	updated int
}

// NewCourse returns the course of a rollout with so many updated pods at the moment that the report is about.
func NewCourse(r *Report, began time.Time, updated int) *Course {
	return &Course{report: r, began: began, updated: updated}
}

// Left returns the time to the end of the rollout, which has so many updated pods now. It is known as long as the forecast has
// an end, and has been right for at least two batches.
func (c *Course) Left(now time.Time, updated int) (left time.Duration, known bool) {
	if c == nil || !c.report.Holds() {
		return 0, false
	}
	foretold, batches := c.report.when(updated - c.updated)
	taken := now.Sub(c.began)
	if batches < 2 || off(taken, foretold) > max(slack, share(foretold)) {
		return 0, false
	}
	return max(inSeconds(c.report.Seconds)-foretold, 0), true
}

// share is the difference from a time that a forecast may have.
func share(d time.Duration) time.Duration { return time.Duration(tolerance * float64(d)) }

func off(a, b time.Duration) time.Duration { return time.Duration(math.Abs(float64(a - b))) }

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// when returns when the update of so many pods has begun, and in how many batches.
func (r *Report) when(updated int) (after time.Duration, batches int) {
	begun := 0
	for _, b := range r.Batches {
		if begun >= updated {
			break
		}
		begun += max(b.InPlace+b.Recreated, b.Added)
		after = inSeconds(b.Seconds)
		batches++
	}
	return after, batches
}
