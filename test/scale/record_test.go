package scale

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/records"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	run := Record{
		Commit: "0123456789abcdef", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Pods: 10, Nodes: 2, Rounds: 1,
		Machine:  records.Machine{Platform: "linux/amd64", Cores: 2, Kubernetes: "1.37.2"},
		Features: map[string][]Row{"cloneset": {{Load: "up", Pods: 10, Writes: map[string]int{"create pods": 10}}}},
	}
	file, err := run.Write(t.TempDir())
	require.NoError(t, err)
	assert.Regexp(t, `/20260102T030405Z-0123456789ab\.json$`, file)
	read, err := ReadRecord(file)
	require.NoError(t, err)
	assert.Equal(t, run, read)
}
