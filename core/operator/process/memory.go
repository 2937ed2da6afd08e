package process

import (
	"errors"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// memoryShare is how much of its memory the process may use before its garbage is collected harder.
const memoryShare = 0.9

// LimitMemory has garbage collected harder before the process reaches the limit of its control group, so that the
// kernel need not kill it. GOMEMLIMIT says otherwise, and where there is no limit nothing changes.
func LimitMemory(log logr.Logger) { limitMemory(log, memlimit.FromCgroup) }

func limitMemory(log logr.Logger, group memlimit.Provider) {
	_, err := memlimit.Set(memlimit.WithProvider(group), memlimit.WithRatio(memoryShare))
	if err != nil && !errors.Is(err, memlimit.ErrNoLimit) && !errors.Is(err, memlimit.ErrNoCgroup) && !errors.Is(err, memlimit.ErrCgroupsNotSupported) {
		log.Info("The memory limit of the control group is unknown", "error", err.Error())
	}
}
