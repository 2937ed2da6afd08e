package plan

// budget is what maxUnavailable leaves.
type budget struct {
	most int
	out  []*pod // live pods that count
	down int    // ordinals that are really out of service, those without a pod too
	busy int    // live pods that count and serve
}

func (p *pass) budget() *budget {
	b := &budget{most: p.numbers.maxUnavailable, down: p.missing}
	for i := range p.slots {
		switch o := p.slots[i].pod; {
		case o == nil || !o.out():
			continue
		case o.down():
			b.down++
			b.out = append(b.out, o)
		default:
			b.busy++
			b.out = append(b.out, o)
		}
	}
	return b
}

// hasRoom says whether a pod that serves may be taken out of service. One that counts already waits for
// those only that are really out of service: else two of them could wait for each other for ever.
func (b *budget) hasRoom(o *pod) bool {
	if o.out() {
		return b.down < b.most
	}
	return b.down+b.busy < b.most
}

// take counts a pod that goes out of service, and that may have counted before.
func (b *budget) take(o *pod, counted bool) {
	b.down++
	if counted {
		b.busy--
		return
	}
	b.out = append(b.out, o)
}
