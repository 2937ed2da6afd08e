package process

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Kinds are kinds without which a process cannot work. They may be installed after it.
type Kinds struct {
	// Missing names those that are not served yet, each with the reason.
	Missing func(context.Context) []string
	// Waits is told what is missing, whenever it was looked for in vain. It is for probes.
	Waits func(missing string)
	// Pause lies between two looks.
	Pause time.Duration
	Clock clock.Clock
	Log   logr.Logger
}

// Wait returns when all kinds are served. It waits for ever: a CRD that is installed later needs no restart. The error
// is that of ctx.
func (k Kinds) Wait(ctx context.Context) error {
	told := ""
	for {
		missing := strings.Join(k.Missing(ctx), ", ")
		if missing == "" {
			return nil
		}
		k.Waits(missing)
		if missing != told {
			k.Log.Info("Controllers wait for CRDs", "missing", missing)
			told = missing
		}
		timer := k.Clock.NewTimer(k.Pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
		}
	}
}
