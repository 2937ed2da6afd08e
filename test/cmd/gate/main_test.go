package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/scale"
)

func TestARecordIsJudgedAgain(t *testing.T) {
	bounds := scale.Bounds{"cloneset": {Exact: map[string]scale.Counted{"up": {Writes: map[string]float64{"create pods": 1}}}}}
	record := func(creates int) scale.Record {
		row := scale.Row{Load: "up", Pods: 10, Controller: "cloneset-manager", Writes: map[string]int{"create pods": creates}}
		return scale.Record{Commit: "abc", Features: map[string][]scale.Row{"cloneset": {row}}}
	}
	var out bytes.Buffer
	require.NoError(t, judge(bounds, record(10), &out))
	assert.Contains(t, out.String(), "commit abc keeps 3 bounds")
	require.EqualError(t, judge(bounds, record(20), &out), "commit abc breaks 1 of 3 bounds")
	assert.Regexp(t, `(?m)^cloneset +up +create pods a pod +2 +1 +BROKEN +abc$`, out.String())
	assert.ErrorContains(t, judge(scale.Bounds{}, record(10), &out), "cloneset.exact[up]: Required value")
}

func TestUnknownCommandsAreRefused(t *testing.T) {
	err := run(t.Context(), []string{"measure"}, io.Discard, io.Discard)
	assert.EqualError(t, err, "\"measure\": the commands are `judge FILE` and `publish`")
}
