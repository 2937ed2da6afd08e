package operator

import (
	"errors"
	"fmt"
	"time"
)

// quietWakes is after how many wakes in a row without a write a quiet world counts as settled, and after how many passes with
// writes at one moment time goes on.
const quietWakes = 20

// ErrUnsettled means that a world had not settled after so many passes.
var ErrUnsettled = errors.New("the world has not settled")

// Play runs passes until nothing is left to do and nothing will happen by itself. It fails with ErrUnsettled if that takes
// more than limit passes, and with the first violation of a rule of the world.
func (o *Operator) Play(limit int) error {
	passes := 0
	settled, err := o.PlayWhile(func() bool { passes++; return passes <= limit })
	if err == nil && !settled {
		err = fmt.Errorf("%w after %d passes", ErrUnsettled, limit)
	}
	return err
}

// PlayWhile runs passes as Play does, as long as more says so. It reports whether nothing is left to do.
func (o *Operator) PlayWhile(more func() bool) (settled bool, err error) {
	idle, atOnce := 0, 0
	for more() {
		out, wake := o.Pass()
		if v := o.world.Violations(); len(v) > 0 {
			return false, fmt.Errorf("%w: %s", ErrViolation, v[0])
		}
		switch {
		case out.Failed > 0 || out.Blocked > 0:
			idle = 0
			o.world.Advance(shorter(wake, time.Second))
		case !out.Idle() || !o.world.Quiet():
			idle = 0
			if o.seesItsWrites() && !out.Idle() && atOnce < quietWakes {
				atOnce++
				continue
			}
			atOnce = 0
			o.moveOn(wake)
		case wake > 0 && idle < quietWakes:
			idle++
			o.world.Advance(wake)
		default:
			return true, nil
		}
	}
	return false, nil
}

// ErrViolation means that a rule of the world was violated.
var ErrViolation = errors.New("a rule of the world was violated")

// seesItsWrites reports whether the operator thinks again at once after a write, because nothing else happens at the moment.
func (o *Operator) seesItsWrites() bool {
	next, is := o.world.Next()
	return o.settings.Coalesce && (!is || next.After(o.world.Now()))
}

// moveOn lets the next thing happen, or time go on up to the moment at which the planner wants to think again.
func (o *Operator) moveOn(wake time.Duration) {
	next, is := o.world.Next()
	switch {
	case wake > 0 && (!is || next.After(o.world.Now().Add(wake))):
		o.world.Advance(wake)
	case is:
		o.world.Step()
		if o.settings.Coalesce {
			o.world.Advance(0)
		}
	}
}
