package endurance

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// given returns a sample a minute of an hour, in which the memory is as the function says.
func given(memory func(minute int) float64) []Sample {
	var all []Sample
	for minute := range 60 {
		all = append(all, Sample{
			At:         time.Duration(minute) * time.Minute,
			MemoryMiB:  memory(minute),
			HeapMiB:    20 + float64(minute%3),
			Goroutines: 300,
			Files:      20,
			Series:     900,
		})
	}
	return all
}

func TestOnlyGrowthAfterTheBeginningCounts(t *testing.T) {
	for name, c := range map[string]struct {
		memory      func(minute int) float64
		early, late float64
		grows       bool
	}{
		"flat":                     {func(int) float64 { return 50 }, 50, 50, false},
		"caches fill at first":     {func(minute int) float64 { return float64(min(5*minute, 50)) }, 50, 50, false},
		"a leak":                   {func(minute int) float64 { return 50 + float64(minute)/4 }, 53.625, 63.625, true},
		"less than the margin":     {func(minute int) float64 { return 50 + float64(minute)/10 }, 51.45, 55.45, false},
		"a peak that goes away":    {func(minute int) float64 { return map[bool]float64{true: 90, false: 50}[minute == 30] }, 50, 50, false},
		"a step that stays behind": {func(minute int) float64 { return map[bool]float64{true: 58, false: 50}[minute >= 50] }, 50, 58, true},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts, err := Judge("cloneset", given(c.memory), time.Hour)
			require.NoError(t, err)
			require.Len(t, verdicts, len(figures()))
			v := verdicts[0]
			assert.Equal(t, "memory, MiB", v.Figure)
			assert.InDelta(t, c.early, v.Early, 1e-9)
			assert.InDelta(t, c.late, v.Late, 1e-9)
			assert.Equal(t, c.grows, v.Grows())
			for _, v := range verdicts[1:] {
				assert.False(t, v.Grows(), v.Figure)
			}
		})
	}
}

// The lowest heap is what garbage leaves out.
func TestGarbageIsNoGrowth(t *testing.T) {
	verdicts, err := Judge("cloneset", given(func(int) float64 { return 50 }), time.Hour)
	require.NoError(t, err)
	assert.Equal(t, Verdict{
		Operator: "cloneset",
		Figure:   "lowest heap, MiB",
		Early:    20,
		Late:     20,
		Limit:    23,
	}, verdicts[1])
}

func TestARunWithoutSamplesHasNoVerdict(t *testing.T) {
	_, err := Judge("cloneset", given(func(int) float64 { return 50 })[:40], time.Hour)
	assert.EqualError(t, err, "cloneset has 10 samples near the beginning and 0 at the end of 1h0m0s: both need one")
}

func TestTheTableNamesWhatGrows(t *testing.T) {
	var out bytes.Buffer
	growing, err := Print(&out, []Verdict{
		{Operator: "jobs", Figure: "goroutines", Early: 300, Late: 400, Limit: 335},
		{Operator: "jobs", Figure: "open files", Early: 20, Late: 20, Limit: 24},
	})
	require.NoError(t, err)
	assert.Equal(t, 1, growing)
	assert.Regexp(t, `(?m)^jobs +goroutines +300\.0 +400\.0 +335\.0 +GROWS$`, out.String())
	assert.Regexp(t, `(?m)^jobs +open files +20\.0 +20\.0 +24\.0 +flat$`, out.String())
}

func TestARunIsBrokenByGrowthAndByFailures(t *testing.T) {
	r := Record{Commit: "abc", Work: &Work{Lives: map[string]int{}}, Verdicts: []Verdict{{Late: 1, Limit: 2}}}
	for _, kind := range Kinds() {
		r.Work.ends(kind.Name, nil)
	}
	require.NoError(t, r.Broken())
	r.Work.ends("cloneset", assert.AnError)
	require.EqualError(t, r.Broken(), "commit abc: 0 of 1 figures grow, 1 lives failed, and kinds without a complete life are: []")
	assert.Equal(t, []string{"cloneset: " + assert.AnError.Error()}, r.Work.Failures)
	r.Work.Failed = 0
	r.Verdicts[0].Late = 3
	require.EqualError(t, r.Broken(), "commit abc: 1 of 1 figures grow, 0 lives failed, and kinds without a complete life are: []")
	r.Verdicts = nil
	delete(r.Work.Lives, "jobs")
	delete(r.Work.Lives, "statefulset")
	assert.EqualError(t, r.Broken(), "commit abc: 0 of 0 figures grow, 0 lives failed, and kinds without a complete life are: [statefulset]")
}
