package progress

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// InTurn returns a Writer that writes one action after the other. write returns when the action has ended.
func InTurn(write func(*action.Action) Outcome, now func() time.Time) Writer {
	var ended []*Outcome
	return Writer{
		Start: func(r *Outcome) bool {
			a := r.Action
			*r = write(a)
			r.Action = a
			ended = append(ended, r)
			return true
		},
		Wait: func() *Outcome {
			first := ended[0]
			ended = ended[1:]
			return first
		},
		Now: now,
	}
}
