package process

import (
	"errors"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
)

// memoryShare is the share of the memory limit that the process may use before the garbage collector works harder.
const memoryShare = 0.9

// limitMemory sets the memory limit of the Go runtime from the limit of the control group, so that the kernel need not
// kill the process. GOMEMLIMIT overrides it, and without a limit nothing changes.
func limitMemory(log logr.Logger, group memlimit.Provider) {
	_, err := memlimit.Set(memlimit.WithProvider(group), memlimit.WithRatio(memoryShare))
	if err != nil && !errors.Is(err, memlimit.ErrNoLimit) && !errors.Is(err, memlimit.ErrNoCgroup) && !errors.Is(err, memlimit.ErrCgroupsNotSupported) {
		log.Info("The memory limit of the control group is unknown", "error", err.Error())
	}
}
