package simulate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/kustomize/rollout"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// longestFilm is how long a rollout is drawn on a terminal, if it takes longer in a cluster.
const longestFilm = 10 * time.Second

// film has the pauses between the drawings of a rollout.
type film struct {
	speed float64
	drawn time.Time // of the simulated cluster, zero before the first drawing
}

// newFilm returns the pauses for a rollout that takes so many seconds.
func newFilm(seconds float64) *film {
	return &film{speed: max(seconds/longestFilm.Seconds(), 1)}
}

// pause returns how long the last drawing is shown until the state of now is drawn.
func (f *film) pause(now time.Time) time.Duration {
	last := f.drawn
	f.drawn = now
	if last.IsZero() {
		return 0
	}
	return time.Duration(float64(now.Sub(last)) / f.speed)
}

// draw returns a function that draws each state of a rollout that takes so many seconds: as a film on a terminal, else at once.
func (c *command) draw(ctx context.Context, seconds float64) func(*workload.Set, []*corev1.Pod, time.Time) {
	screen := rollout.NewScreen(c.streams.ErrOut)
	film := newFilm(seconds)
	return func(set *workload.Set, pods []*corev1.Pod, now time.Time) {
		if pause := film.pause(now); pause > 0 && screen.IsTerminal() {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
		screen.Show(set, pods)
	}
}
