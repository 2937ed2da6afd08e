package cluster

import (
	"io"
	"log"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSupervisorAnswersAndSaysWhatItCannotDo(t *testing.T) {
	s := exampleState()
	s.Folder = t.TempDir()
	s.Machines = []machine{{Name: controlPlaneName, Index: -1}}
	supervisor := &supervisor{state: s, log: log.New(io.Discard, "", 0), machines: map[string]*runningMachine{}}
	listener, err := net.Listen("unix", s.layout().socket())
	require.NoError(t, err)
	go supervisor.serveControl(t.Context(), listener, func() {})
	c := &Cluster{state: s}
	var machines []MachineStatus
	require.NoError(t, c.control(t.Context(), "GET", "/machines", &machines))
	assert.Equal(t, []MachineStatus{{Name: controlPlaneName}}, machines)
	require.ErrorContains(t, c.control(t.Context(), "POST", "/nodes/n7/stop", nil), `no node "n7"`)
	require.NoError(t, c.control(t.Context(), "POST", "/down", nil))
}
