package frame

import (
	"slices"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
)

// Reasons are all types and reasons of conditions, reasons of waits and of events that any workload has.
var Reasons = slices.Concat(
	action.Reasons, completion.Reasons, conditions.Types, conditions.Reasons, podupdate.Reasons, predownload.Reasons,
)
