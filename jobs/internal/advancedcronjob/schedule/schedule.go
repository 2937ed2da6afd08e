package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zones

	"github.com/robfig/cron/v3"
)

// MaxCounted is how many runs are counted. More are reported as too many.
const MaxCounted = 100

// Errors of schedules that cannot be followed.
var (
	// ErrNever means that no day is such as the schedule asks for.
	ErrNever = errors.New("the schedule matches no time")
	// ErrTooOften means that runs are less than a second apart.
	ErrTooOften = errors.New("runs must be at least a second apart")
	// ErrZones means that a second time zone follows the first one.
	ErrZones = errors.New("the schedule has more than one time zone")
)

// Schedule is when runs are due. Runs are whole seconds.
type Schedule struct {
	zone  *time.Location
	cron  cron.Schedule
	every time.Duration // instead of cron: at this distance from where one counts
}

// Parse reads a schedule: five fields, or a descriptor such as @daily or @every 1h, with TZ=ZONE or CRON_TZ=ZONE before
// it or not. The time zone is an IANA name; where the schedule has none either, the time zone of the process applies.
func Parse(text string, timeZone *string) (Schedule, error) {
	s := Schedule{zone: time.Local}
	rest, name, named := cutZone(text)
	if !named && timeZone != nil {
		name, named = *timeZone, true
	}
	if named {
		zone, err := time.LoadLocation(name)
		if err != nil || name == "" {
			return s, fmt.Errorf("unknown time zone %q", name)
		}
		s.zone = zone
	}
	if NamesZone(rest) {
		return s, ErrZones
	}
	if text, ok := strings.CutPrefix(rest, "@every "); ok {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return s, fmt.Errorf("parse @every: %w", err)
		case d < time.Second:
			return s, ErrTooOften
		}
		s.every = d.Truncate(time.Second)
		return s, nil
	}
	parsed, err := cron.ParseStandard(rest)
	if err != nil {
		return s, err
	}
	s.cron = parsed
	leapYear := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	if s.next(leapYear).IsZero() {
		return s, ErrNever
	}
	return s, nil
}

// NamesZone reports whether a schedule names a time zone itself.
func NamesZone(text string) bool {
	_, _, named := cutZone(text)
	return named
}

// cutZone splits a schedule into the text after the time zone, and that zone.
func cutZone(text string) (rest, zone string, named bool) {
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if after, ok := strings.CutPrefix(text, prefix); ok {
			zone, rest, _ = strings.Cut(after, " ")
			return strings.TrimSpace(rest), zone, true
		}
	}
	return text, "", false
}

// Due returns the last run after one time and until another, that one included, and how many runs there are, of which
// no more than MaxCounted are counted. Without a run both are zero. @every counts from the first of the two times.
func (s Schedule) Due(from, until time.Time) (last time.Time, n int) {
	if !until.After(from) {
		return time.Time{}, 0
	}
	if s.every > 0 {
		from = from.Truncate(time.Second)
		passed := until.Sub(from)
		if passed < s.every {
			return time.Time{}, 0
		}
		return from.Add(passed.Truncate(s.every)).In(s.zone), int(min(passed/s.every, MaxCounted))
	}
	for t := s.next(from); !t.IsZero() && !t.After(until); t = s.next(t) {
		last = t
		if n++; n == MaxCounted {
			return s.search(last, until), n
		}
	}
	return last, n
}

// search returns the last run until a time, given an earlier one, by halving the time between.
func (s Schedule) search(last, until time.Time) time.Time {
	for end := until; end.Sub(last) > time.Second; {
		middle := last.Add(end.Sub(last) / 2)
		if t := s.next(middle); !t.IsZero() && !t.After(until) {
			last = t
		} else {
			end = middle
		}
	}
	return last
}

// Next returns the first run after now. @every counts from the first time.
func (s Schedule) Next(from, now time.Time) time.Time {
	if s.every == 0 {
		return s.next(now)
	}
	if last, _ := s.Due(from, now); !last.IsZero() {
		from = last
	}
	return from.Truncate(time.Second).Add(s.every).In(s.zone)
}

// next returns the first run after a time, zero if there is none within five years.
func (s Schedule) next(t time.Time) time.Time { return s.cron.Next(t.In(s.zone)) }
