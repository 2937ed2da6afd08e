package manager

import (
	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

// Settings returns the process's settings for one of its controllers, which writes with the user agent
// <feature>-manager/<controller>. With 0 workers the controller uses its default.
func (e *Environment) Settings(controller string, workers int) base.Settings {
	return base.Settings{
		Workers:   workers,
		Reader:    fastclient.Options{Copy: e.Options.DisableNoDeepCopy},
		Fence:     e.fence,
		Namespace: e.Options.Namespace,
		UserAgent: userAgent(e.Feature, controller),
		Retries:   e.Options.Retries,
	}
}
