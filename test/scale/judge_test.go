package scale

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brokenBounds returns the bounds that the rows of CloneSet exceed.
func brokenBounds(verdicts []Verdict) []string {
	var broken []string
	for _, v := range verdicts {
		if v.Broken() {
			broken = append(broken, v.Load+": "+v.Bound)
		}
	}
	return broken
}

func TestCountsAreJudged(t *testing.T) {
	const operator = "cloneset-manager"
	bounds := Bounds{"cloneset": {Exact: map[string]Counted{
		"up": {
			Writes: map[string]float64{"create pods": 1, "create controllerrevisions": 1}, Reads: map[string]float64{"list pods": 2},
			Varying: []string{"patch clonesets/status"}, Events: 0.5,
		},
		"idle": {Writes: map[string]float64{"update leases": 3}},
	}}}
	within := func() Row {
		return Row{
			Load: "up", Pods: 10, Controller: operator, Events: 5, Reads: map[string]int{"list pods": 2, "watch nodes": 4},
			Writes: map[string]int{"create pods": 10, "create controllerrevisions": 1, "patch clonesets/status": 70},
		}
	}
	idle := func(writes int) Row {
		return Row{Load: "idle", Done: 20, Controller: operator, Writes: map[string]int{"update leases": writes}}
	}
	for name, tt := range map[string]struct {
		rows []Row
		want []string
	}{
		"within":                    {[]Row{within(), idle(1)}, nil},
		"one create too many":       {[]Row{with(within(), func(r *Row) { r.Writes["create pods"]++ })}, []string{"up: create pods a pod"}},
		"in the second round only":  {[]Row{within(), with(within(), func(r *Row) { r.Writes["create pods"]++ }), within()}, []string{"up: create pods a pod"}},
		"a kind without a bound":    {[]Row{with(within(), func(r *Row) { r.Writes["patch pods"] = 1 })}, []string{"up: patch pods a pod"}},
		"another object twice":      {[]Row{with(within(), func(r *Row) { r.Writes["create controllerrevisions"] = 2 })}, []string{"up: create controllerrevisions"}},
		"a read too many":           {[]Row{with(within(), func(r *Row) { r.Reads["list pods"]++ })}, []string{"up: list pods"}},
		"a conflict":                {[]Row{with(within(), func(r *Row) { r.Conflicts = 1 })}, []string{"up: conflicts"}},
		"an Event too many":         {[]Row{with(within(), func(r *Row) { r.Events = 6 })}, []string{"up: Events a pod"}},
		"an idle operator writes":   {[]Row{idle(2)}, []string{"idle: update leases a minute"}},
		"another controller writes": {[]Row{{Load: "built-in up", Controller: "kube-controller-manager", Writes: map[string]int{"create pods": 99}}}, nil},
		"nothing was counted":       {[]Row{{Load: "edit", Pods: 10, Controller: operator}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts, err := bounds.JudgeCounts("cloneset", "abc", tt.rows)
			require.NoError(t, err)
			assert.Equal(t, tt.want, brokenBounds(verdicts))
			for _, v := range verdicts {
				assert.Equal(t, "cloneset abc", v.Feature+" "+v.Commit)
			}
		})
	}
	requests := Bounds{"daemon": {Exact: map[string]Counted{"up": {Writes: map[string]float64{"patch pods/status": 2}}}}}
	verdicts, err := requests.JudgeCounts("daemon", "abc", []Row{{
		Load: "up", Of: "requests", Pods: 10, Controller: "daemon-manager", Writes: map[string]int{"patch pods/status": 21},
	}})
	require.NoError(t, err)
	assert.Equal(t, []string{"up: patch pods/status a request"}, brokenBounds(verdicts), "pods count for each object of another resource")
	_, err = bounds.JudgeCounts("cloneset", "abc", []Row{{Load: "down", Controller: operator, Done: 1}})
	assert.ErrorContains(t, err, "cloneset.exact[down]: Required value")
}

func with(r Row, change func(*Row)) Row {
	change(&r)
	return r
}

func TestMeansAreJudged(t *testing.T) {
	row := func(load, controller string, ready, cpu float64, memory int) Row {
		return Row{
			Load: load, Pods: 10, Controller: controller, ToReady: ready, ToReadyP99: 2 * ready,
			Costs: map[string]Cost{controller: {CPU: cpu, MemoryMiB: memory}},
		}
	}
	bounds := Bounds{"cloneset": {Relative: map[string]Means{"up": {To: "built-in up", ToReady: 1, ToReadyP99: 1, CPU: 1.5, MemoryMiB: 50}}}}
	builtIn := []Row{row("built-in up", "kcm", 0.5, 1, 99), row("built-in up", "kcm", 1.5, 3, 99)} // on average 1 and 2
	for name, tt := range map[string]struct {
		own  []Row
		want []string
	}{
		"as recorded":             {[]Row{row("up", "op", 1, 3, 50)}, nil},
		"a fifth above":           {[]Row{row("up", "op", 1.2, 3.6, 60)}, nil},
		"one round is much above": {[]Row{row("up", "op", 0.4, 1, 20), row("up", "op", 2, 5, 90)}, nil},
		"slow":                    {[]Row{row("up", "op", 1.25, 3, 50)}, []string{"up: creation to Ready, median, ratio", "up: creation to Ready, p99, ratio"}},
		"busy":                    {[]Row{row("up", "op", 1, 3.7, 50)}, []string{"up: CPU for each object, ratio"}},
		"large":                   {[]Row{row("up", "op", 1, 3, 61)}, []string{"up: memory, 95th percentile, MiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts, err := bounds.Judge(Record{Commit: "abc", Pods: DefaultPods, Features: map[string][]Row{"cloneset": append(tt.own, builtIn...)}})
			require.NoError(t, err)
			assert.Len(t, verdicts, 4)
			assert.Equal(t, tt.want, brokenBounds(verdicts))
		})
	}
	_, err := bounds.Judge(Record{Pods: DefaultPods, Features: map[string][]Row{"cloneset": {row("up", "op", 1, 3, 50)}}})
	require.ErrorContains(t, err, `cloneset.relative[up].to: Not found: "built-in up"`)
	_, err = bounds.Judge(Record{Pods: DefaultPods, Features: map[string][]Row{"cloneset": builtIn}})
	assert.ErrorContains(t, err, `cloneset.relative[up]: Not found: "up"`)
}

func TestMeansAreOfTheSameNumberOfPods(t *testing.T) {
	bounds := Bounds{"cloneset": {Relative: map[string]Means{"up": {MemoryMiB: 50}}}}
	row := Row{Load: "up", Controller: "op", Costs: map[string]Cost{"op": {MemoryMiB: 99}}}
	for pods, want := range map[int][]string{DefaultPods: {"up: memory, 95th percentile, MiB"}, 100: nil} {
		verdicts, err := bounds.Judge(Record{Pods: pods, Features: map[string][]Row{"cloneset": {row}}})
		require.NoError(t, err)
		assert.Equal(t, want, brokenBounds(verdicts))
	}
}

func TestTheTableOfVerdictsNamesWhatIsBroken(t *testing.T) {
	var out bytes.Buffer
	broken, err := PrintVerdicts(&out, []Verdict{
		{Feature: "cloneset", Load: "up", Bound: "create pods a pod", Measured: 1, Limit: 1, Commit: "0123456789abcdef"},
		{Feature: "cloneset", Load: "up", Bound: "conflicts", Measured: 2, Commit: "0123456789abcdef-dirty"},
	})
	require.NoError(t, err)
	assert.Equal(t, 1, broken)
	assert.Regexp(t, `(?m)^cloneset +up +create pods a pod +1 +1 +ok +0123456789ab$`, out.String())
	assert.Regexp(t, `(?m)^cloneset +up +conflicts +2 +0 +BROKEN +0123456789ab-dirty$`, out.String())
}
