package refusal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/refusal"
)

// tries returns the moments in the first minutes at which a writer tries that looks at its object every 100 ms, each
// time in another version.
func tries(outdated bool) []time.Duration {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r refusal.Refusal
	var all []time.Duration
	for passed := time.Duration(0); passed < 10*time.Minute; passed += 100 * time.Millisecond {
		version, now := passed.String(), begin.Add(passed)
		if r.Left(version, now) == 0 {
			all = append(all, passed)
			r, _ = r.Again(version, outdated, now)
		}
	}
	return all
}

func TestRefusedWritesAreTriedNowAndThen(t *testing.T) {
	for name, outdated := range map[string]bool{"refused": false, "always another version": true} {
		t.Run(name, func(t *testing.T) {
			first, lately := 0, 0
			for _, at := range tries(outdated) {
				if at <= 10*time.Second {
					first++
				}
				if at >= 9*time.Minute {
					lately++
				}
			}
			assert.LessOrEqual(t, first, 10)
			assert.Equal(t, 2, lately, "in a minute")
		})
	}
}

func TestAnotherVersionIsTriedAtOnce(t *testing.T) {
	now := time.Now()
	r, pause := refusal.Refusal{}.Again("1", true, now)
	assert.Equal(t, time.Second, pause)
	assert.Zero(t, r.Left("2", now))
	assert.Equal(t, time.Second, r.Left("1", now))
	assert.Zero(t, r.Left("1", now.Add(time.Second)))
	assert.Zero(t, refusal.Refusal{}.Left("1", now))
}
