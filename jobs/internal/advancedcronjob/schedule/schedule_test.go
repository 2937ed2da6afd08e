package schedule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

const newYork = "America/New_York"

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

func parse(t *testing.T, text, zone string) Schedule {
	t.Helper()
	var name *string
	if zone != "" {
		name = &zone
	}
	s, err := Parse(text, name)
	require.NoError(t, err)
	return s
}

func TestSchedulesThatAreAccepted(t *testing.T) {
	from := "2026-03-04T10:02:10Z" // a Wednesday
	for _, test := range []struct{ schedule, zone, want string }{
		{"*/5 * * * *", "", "2026-03-04T10:05:00Z"},
		{"0 10 * * ?", "Asia/Shanghai", "2026-03-05T10:00:00+08:00"},
		{"TZ=Asia/Shanghai 0 20 * * *", "", "2026-03-04T20:00:00+08:00"},
		{"CRON_TZ=Asia/Shanghai   0 20 * * *", "", "2026-03-04T20:00:00+08:00"},
		{"TZ=Asia/Shanghai 0 20 * * *", newYork, "2026-03-04T20:00:00+08:00"},
		{"0 12 * JAN,APR MON-FRI", "", "2026-04-01T12:00:00Z"},
		{"0 0 13 * FRI", "", "2026-03-06T00:00:00Z"}, // either day
		{"0 0 29 2 *", "", "2028-02-29T00:00:00Z"},
		{"@yearly", "", "2027-01-01T00:00:00Z"},
		{"@annually", "", "2027-01-01T00:00:00Z"},
		{"@monthly", "", "2026-04-01T00:00:00Z"},
		{"@weekly", "", "2026-03-08T00:00:00Z"},
		{"@daily", newYork, "2026-03-05T00:00:00-05:00"},
		{"@midnight", "", "2026-03-05T00:00:00Z"},
		{"@hourly", "", "2026-03-04T11:00:00Z"},
		{"@every 1h30m", "", "2026-03-04T11:32:10Z"},
		{"TZ=Asia/Shanghai @every 90s", "", "2026-03-04T18:03:40+08:00"},
	} {
		next := parse(t, test.schedule, test.zone).Next(at(t, from), at(t, from))
		assert.Equal(t, test.want, next.Format(time.RFC3339), test.schedule)
	}
}

func TestSchedulesThatAreRefused(t *testing.T) {
	for _, test := range []struct{ schedule, zone, want string }{
		{"", "", "empty spec string"},
		{"* * * *", "", "expected exactly 5 fields"},
		{"0 * * * * *", "", "expected exactly 5 fields"},
		{"60 * * * *", "", "above maximum"},
		{"*/0 * * * *", "", "positive number"},
		{"5-1 * * * *", "", "beyond end of range"},
		{"@sometimes", "", "unrecognized descriptor"},
		{"@every", "", "unrecognized descriptor"},
		{"@every soon", "", "parse @every"},
		{"@every 0s", "", "at least a second"},
		{"@every -1h", "", "at least a second"},
		{"0 0 31 2 *", "", "matches no time"},
		{"TZ=0", "", `unknown time zone "0"`},
		{"CRON_TZ=", "", `unknown time zone ""`},
		{"TZ= * * * * *", "", `unknown time zone ""`},
		{"TZ=Europe/Berlin", "", "empty spec string"},
		{"TZ=UTC TZ=0", "", "more than one time zone"}, // the parser would panic
		{"TZ=UTC CRON_TZ=Asia/Tokyo * * * * *", "", "more than one time zone"},
		{"TZ=Nowhere/City * * * * *", "", `unknown time zone "Nowhere/City"`},
		{"* * * * *", "Nowhere/City", `unknown time zone "Nowhere/City"`},
	} {
		_, err := Parse(test.schedule, &test.zone)
		if test.zone == "" {
			_, err = Parse(test.schedule, nil)
		}
		require.ErrorContains(t, err, test.want, test.schedule)
	}
	assert.True(t, NamesZone("TZ=UTC * * * * *"))
	assert.False(t, NamesZone("* * * * *"))
}

// The hour that is left out on 2026-03-08 and the one that comes twice on 2026-11-01 in New York: a time that does not
// exist is left out, one that comes twice is due twice, and schedules of every hour go on by the hour.
func TestClocksThatAreChanged(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, from string
		want           []string
	}{
		"a time that is left out":     {"30 2 * * *", "2026-03-07T12:00:00-05:00", []string{"2026-03-09T02:30:00-04:00"}},
		"hours around":                {"0 * * * *", "2026-03-08T00:30:00-05:00", []string{"2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00"}},
		"the hour after":              {"0 3 * * *", "2026-03-07T12:00:00-05:00", []string{"2026-03-08T03:00:00-04:00"}},
		"a time that comes twice":     {"30 1 * * *", "2026-10-31T12:00:00-04:00", []string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00"}},
		"hours that come twice":       {"0 * * * *", "2026-11-01T00:30:00-04:00", []string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"}},
		"the hour after, once":        {"0 2 * * *", "2026-10-31T12:00:00-04:00", []string{"2026-11-01T02:00:00-05:00", "2026-11-02T02:00:00-05:00"}},
		"each day at noon":            {"0 12 * * *", "2026-10-31T12:00:00-04:00", []string{"2026-11-01T12:00:00-05:00"}},
		"every day by the clock hand": {"@every 24h", "2026-10-31T12:00:00-04:00", []string{"2026-11-01T11:00:00-05:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, from := parse(t, test.schedule, newYork), at(t, test.from)
			for _, want := range test.want {
				from = s.Next(from, from)
				assert.Equal(t, want, from.Format(time.RFC3339))
			}
		})
	}
	// Midnight is left out where clocks change then.
	s, from := parse(t, "0 0 * * *", "Africa/Cairo"), at(t, "2026-04-23T12:00:00+02:00")
	assert.Equal(t, "2026-04-25T00:00:00+03:00", s.Next(from, from).Format(time.RFC3339))
}

func TestRunsThatAreDue(t *testing.T) {
	for name, test := range map[string]struct {
		schedule, from, until string
		last                  string
		n                     int
	}{
		"none":                  {"*/5 * * * *", "2026-03-04T10:02:10Z", "2026-03-04T10:04:59Z", "", 0},
		"at the second":         {"*/5 * * * *", "2026-03-04T10:02:10Z", "2026-03-04T10:05:00Z", "2026-03-04T10:05:00Z", 1},
		"not that of the start": {"*/5 * * * *", "2026-03-04T10:05:00Z", "2026-03-04T10:09:00Z", "", 0},
		"after an outage":       {"*/5 * * * *", "2026-03-04T10:05:00Z", "2026-03-04T10:31:00Z", "2026-03-04T10:30:00Z", 5},
		"ten years":             {"* * * * *", "2016-03-04T10:05:00Z", "2026-03-04T10:31:20Z", "2026-03-04T10:31:00Z", MaxCounted},
		"dense and long ago":    {"* * 1 1 *", "2024-12-31T00:00:00Z", "2025-11-04T10:31:20Z", "2025-01-01T23:59:00Z", MaxCounted},
		"backwards":             {"* * * * *", "2026-03-04T10:05:00Z", "2026-03-04T10:00:00Z", "", 0},
		"every":                 {"@every 7s", "2026-03-04T10:00:00Z", "2026-03-04T10:00:20Z", "2026-03-04T10:00:14Z", 2},
		"every, not yet":        {"@every 7s", "2026-03-04T10:00:00Z", "2026-03-04T10:00:06Z", "", 0},
		"every, for years":      {"@every 7s", "2016-03-04T10:00:00Z", "2026-03-04T10:00:20Z", "2026-03-04T10:00:19Z", MaxCounted},
	} {
		t.Run(name, func(t *testing.T) {
			last, n := parse(t, test.schedule, "").Due(at(t, test.from), at(t, test.until))
			assert.Equal(t, test.n, n)
			if test.last == "" {
				assert.Zero(t, last)
				return
			}
			assert.Equal(t, test.last, last.UTC().Format(time.RFC3339))
		})
	}
	s := parse(t, "@every 1h", "")
	from := at(t, "2026-03-04T10:00:00Z")
	assert.Equal(t, at(t, "2026-03-04T13:00:00Z"), s.Next(from, at(t, "2026-03-04T12:10:00Z")).UTC(), "the distance stays")
}

// builtIn is what the built-in CronJob asks for its times.
func builtIn(t *testing.T, text, zone string) cron.Schedule {
	t.Helper()
	s, err := cron.ParseStandard("TZ=" + zone + " " + text)
	require.NoError(t, err)
	return s
}

func TestRandomSchedulesAreThoseOfTheBuiltInKind(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 1))
		field := func(choices ...string) string { return choices[r.IntN(len(choices))] }
		text := strings.Join([]string{
			field("*", "0", "30", "*/7", "15,45", "59"), field("*", "0", "1", "2", "3", "0-3", "*/6"),
			field("*", "*", "1", "*/3", "31"), field("*", "*", "3", "10,11"), field("*", "*", "SUN", "1-5"),
		}, " ")
		zone := field(newYork, "UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Cairo", "America/Santiago", "Asia/Kathmandu")
		s, err := Parse(text, &zone)
		if err != nil {
			require.ErrorIs(t, err, ErrNever)
			return
		}
		other := builtIn(t, text, zone)
		from := time.Date(2026, time.Month(1+r.IntN(12)), 1+r.IntN(31), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1e9), time.UTC)
		until := from.Add(time.Duration(r.Int64N(int64(20 * 24 * time.Hour))))
		var want time.Time
		n := 0
		for next := other.Next(from); !next.IsZero() && !next.After(until); next = other.Next(next) {
			want, n = next, n+1
		}
		last, counted := s.Due(from, until)
		assert.True(t, want.Equal(last), "%s in %s after %s until %s: %s instead of %s", text, zone, from, until, last, want)
		assert.Equal(t, min(n, MaxCounted), counted)
		assert.True(t, other.Next(until).Equal(s.Next(from, until)))
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"* * * * *", "TZ=0", "TZ=UTC @daily", "@every 1h", "1-2/3,4 * ? JAN *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, nil)
		if err != nil {
			return
		}
		from := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
		assert.True(t, s.Next(from, from).After(from))
	})
}

func BenchmarkTenYearsOfMissedRuns(b *testing.B) {
	s, err := Parse("* * * * *", nil)
	require.NoError(b, err)
	until := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	for b.Loop() {
		s.Due(until.AddDate(-10, 0, 0), until)
	}
}
