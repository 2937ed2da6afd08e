package rollout

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// estimate knows how long a rollout still takes, from the moment when its forecast is there and while the forecast is right.
type estimate struct {
	clock  clock.PassiveClock
	course <-chan *forecast.Course
	known  *forecast.Course
}

// newEstimate plays the rollout of a workload during its wait. A workload that cannot be played has no estimate.
func newEstimate(ctx context.Context, client *workload.Client, s *workload.Set, c clock.PassiveClock) *estimate {
	course := make(chan *forecast.Course, 1)
	began, updated := c.Now(), s.Updated
	if s.Observed < s.Generation { // the count is about the revision before
		updated = 0
	}
	go func() {
		scene, err := forecast.Read(ctx, client, workload.Named{Kind: s.Kind, Name: s.Name}, nil, began)
		if err != nil {
			return
		}
		if report, err := forecast.Play(ctx, scene, forecast.Edit{}); err == nil {
			course <- forecast.NewCourse(report, began, updated)
		}
	}()
	return &estimate{clock: c, course: course}
}

// of returns the end of a message about a workload in progress, such as ", about 4 minutes to go"; empty if nothing is known.
func (e *estimate) of(s *workload.Set, p progress.Report) string {
	if e == nil || p.Phase != progress.Progressing {
		return ""
	}
	select {
	case e.known = <-e.course:
	default:
	}
	left, known := e.known.Left(e.clock.Now(), s.Updated)
	if !known {
		return ""
	}
	return ", " + forecast.ToGo(left)
}
