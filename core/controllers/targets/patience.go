package targets

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/later"
)

const (
	// retryInterval is how long an answer is cached that is an error, such as a refusal.
	retryInterval = 10 * time.Second
	// silentInterval is how long it is cached that there was no answer: the server may be busy for a moment.
	silentInterval = 2 * time.Second
	// longestSilence is how long questions without an answer pass by themselves. Afterwards they are failures.
	longestSilence = time.Minute
	// silencesTTL is how long the beginning of a silence is remembered after the last question in it.
	silencesTTL = 10 * time.Minute
)

// patience tells errors that pass by themselves from those that last.
type patience struct {
	clock    clock.PassiveClock
	silences *utilcache.LRUExpireCache // question to the time since which it has had no answer
}

func newPatience(c clock.PassiveClock) *patience {
	return &patience{clock: c, silences: utilcache.NewLRUExpireCacheWithClock(cacheSize, c)}
}

// failed returns the error of a question, and logs one that may pass. It is nil for nil.
func (p *patience) failed(ctx context.Context, question string, err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) || errors.Is(err, ErrNoScale) {
		p.silences.Remove(question)
		return err
	}
	now := p.clock.Now()
	since := now
	if first, ok := p.silences.Get(question); ok {
		since = first.(time.Time)
	}
	p.silences.Add(question, since, silencesTTL)
	if now.Sub(since) >= longestSilence {
		return err
	}
	after := silentInterval
	if apierrors.IsInternalError(err) { // such as that of a conversion
		after = retryInterval
	}
	log.FromContext(ctx).Info("The API server does not answer; asking again", "after", after.String(), "error", err.Error())
	return p.passing(err, after)
}

// passing returns the error with the time at which the server is asked again.
func (p *patience) passing(err error, after time.Duration) error {
	return &later.Error{Err: err, At: p.clock.Now().Add(after)}
}

// life returns how long an answer is cached: valid, unless it is an error.
func (p *patience) life(err error, valid time.Duration) time.Duration {
	if err == nil {
		return valid
	}
	if wait, passes := later.Wait(err, p.clock.Now()); passes {
		return wait
	}
	return retryInterval
}
