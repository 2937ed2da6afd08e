package plan

// disruptionBudget is the room that maxUnavailable leaves.
type disruptionBudget struct {
	maxUnavailable int
	counted        []*pod // live pods that count
	outOfService   int    // ordinals that are really out of service, those without a pod too
	changing       int    // live pods that count and serve
}

func (p *pass) disruptionBudget() *disruptionBudget {
	b := &disruptionBudget{maxUnavailable: p.numbers.maxUnavailable, outOfService: p.missing}
	for i := range p.slots {
		switch o := p.slots[i].pod; {
		case o == nil || !o.countsAsUnavailable():
			continue
		case o.outOfService():
			b.outOfService++
			b.counted = append(b.counted, o)
		default:
			b.changing++
			b.counted = append(b.counted, o)
		}
	}
	return b
}

// allows reports whether a pod that serves may be taken out of service. One that counts already waits for those only
// that are really out of service: else two of them could wait for each other without end.
func (b *disruptionBudget) allows(o *pod) bool {
	if o.countsAsUnavailable() {
		return b.outOfService < b.maxUnavailable
	}
	return b.outOfService+b.changing < b.maxUnavailable
}

// full reports whether nothing more may go out of service.
func (b *disruptionBudget) full() bool { return b.outOfService >= b.maxUnavailable }

// spend counts a pod that goes out of service, and that may have counted before.
func (b *disruptionBudget) spend(o *pod, counted bool) {
	b.outOfService++
	if counted {
		b.changing--
		return
	}
	b.counted = append(b.counted, o)
}
