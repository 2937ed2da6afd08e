package imagepull

import (
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
)

func (p *Puller) snapshot(image *v1beta1.NodeImage) plan.Snapshot {
	s := plan.Snapshot{
		Image: image,
		Pulls: p.pulls.list(),
		Slots: p.config.Slots,
		Now:   p.Clock.Now(),
	}
	if err := p.config.Runtimes.Ready(); err != nil {
		s.NoRuntime = err.Error()
	}
	return s
}
