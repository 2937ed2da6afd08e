package forecast

import (
	spread "github.com/flotilla-project/flotilla/spread/whatif"
)

// subsets returns the subsets of the WorkloadSpreads that target the workload.
func (p *player) subsets() []Subset {
	var all []Subset
	for _, state := range p.spreads.States() {
		if state.Spread.Namespace != p.key.Namespace || state.Target.Kind != p.scene.Kind.Name || state.Target.Name != p.key.Name {
			continue
		}
		for _, s := range state.Subsets {
			one := Subset{
				Spread: state.Spread.Name,
				Name:   s.Name,
				Pods:   s.Pods,
				Closed: s.Closed,
			}
			if s.Limit != spread.Unlimited {
				one.Limit = new(s.Limit)
			}
			all = append(all, one)
		}
	}
	return all
}
