package manager

import (
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
)

// Settings returns the process's settings for one of its controllers, which writes with the user agent
// <feature>-manager/<controller>. With 0 workers the controller uses its default.
func (e *Environment) Settings(controller string, workers int) pass.Settings {
	return pass.Settings{
		Workers:   workers,
		Reader:    fastclient.Options{Copy: e.Options.DisableNoDeepCopy},
		Fence:     e.fence,
		Namespace: e.Options.Namespace,
		UserAgent: userAgent(e.Feature, controller),
		Retries:   e.Options.Retries,
	}
}
