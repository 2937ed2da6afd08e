package process

import (
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Kinds are kinds that a process needs. They may be installed later.
type Kinds struct {
	// Missing lists those that are not served yet, each with the reason.
	Missing func(context.Context) []string
	// OnMissing is called with the missing kinds after each check that finds some. It is for probes.
	OnMissing func(missing string)
	// Interval is the time between two checks.
	Interval time.Duration
	Clock    clock.Clock
	Log      logr.Logger
}

// Wait returns when all kinds are served. It has no timeout: a CRD that is installed later needs no restart. The error is
// the error of ctx.
func (k Kinds) Wait(ctx context.Context) error {
	told := ""
	for {
		missing := strings.Join(k.Missing(ctx), ", ")
		if missing == "" {
			return nil
		}
		k.OnMissing(missing)
		if missing != told {
			k.Log.Info("Controllers wait for missing kinds or permissions", "missing", missing)
			told = missing
		}
		timer := k.Clock.NewTimer(k.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
		}
	}
}
