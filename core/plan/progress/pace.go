package progress

const (
	// DefaultParallelism is how many actions of a step are under way at most.
	DefaultParallelism = 32
	// maxConsecutiveRefusals is how many refusals in a row end a step: the rest would fare no better.
	maxConsecutiveRefusals = 3
	// initialParallelism is how many actions a step begins with: a refusal of one may apply to all.
	initialParallelism = 4
)

// pace is how many actions of a step are under way. It begins with a few, a slow start with one, and allows one more
// with each success: 1, 2, 4, 8 per round trip, without waiting for the slowest of a batch.
type pace struct {
	slowStart bool
	limit     int
	allowed   int
	underWay  int
	refused   int // in a row
	stopped   bool
	failed    bool // an action, so that the rest would fare no better
}

func newPace(slowStart bool, limit int) *pace {
	if limit == 0 {
		limit = DefaultParallelism
	}
	p := &pace{
		slowStart: slowStart,
		limit:     limit,
		allowed:   min(initialParallelism, limit),
	}
	if slowStart {
		p.allowed = 1
	}
	return p
}

// resume continues with as many actions under way as an earlier pass had reached.
func (p *pace) resume(reached int) { p.allowed = max(p.allowed, min(reached, p.limit)) }

func (p *pace) mayStart() bool { return !p.stopped && p.underWay < p.allowed }

func (p *pace) started() { p.underWay++ }

// ended adapts the pace to the outcome of an action.
func (p *pace) ended(r *Outcome) {
	p.underWay--
	switch {
	case r.State == Done:
		p.allowed = min(p.allowed+1, p.limit)
		p.refused = 0
	case r.fatal, p.slowStart && !r.isolated:
		p.failed = true
	case r.State == Blocked && !r.isolated:
		p.refused++
		p.failed = p.failed || p.refused == maxConsecutiveRefusals
	}
	p.stopped = p.stopped || p.failed
}
