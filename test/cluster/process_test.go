package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func exampleProcess(t *testing.T) Process {
	t.Helper()
	folder := t.TempDir()
	return Process{Name: "example", Log: filepath.Join(folder, "log"), Record: filepath.Join(folder, "record")}
}

func TestProcessIsStartedAgainAndItsEndWrittenDown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := exampleProcess(t)
	runs := 0
	keepRunning(ctx, p, func(context.Context, Process, *os.File) error {
		if runs++; runs == 2 {
			cancel()
		}
		return errors.New("out of luck")
	})
	assert.Equal(t, 2, runs)
	var record Record
	require.NoError(t, readJSON(p.Record, &record))
	assert.Equal(t, Record{Name: "example", Starts: 2, LastEnd: "out of luck"}, record)
	log, err := os.ReadFile(p.Log)
	require.NoError(t, err)
	assert.Contains(t, string(log), "--- example ended (out of luck), starting again")
}

func TestProcessWaitsForWhatItNeeds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := exampleProcess(t)
	socket := filepath.Join(t.TempDir(), "s")
	p.After = []Probe{{Unix: socket}}
	listening := make(chan struct{})
	go func() {
		close(listening)
		listener, err := net.Listen("unix", socket)
		if assert.NoError(t, err) {
			<-ctx.Done()
			_ = listener.Close()
		}
	}()
	keepRunning(ctx, p, func(context.Context, Process, *os.File) error {
		defer cancel()
		select {
		case <-listening:
		default:
			t.Error("started before its need was there")
		}
		return nil
	})
}

func TestProbesTellWhetherSomebodyAnswers(t *testing.T) {
	healthy := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer healthy.Close()
	sick := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }))
	defer sick.Close()
	require.NoError(t, Probe{HTTPS: healthy.URL}.check(t.Context()))
	require.ErrorContains(t, Probe{HTTPS: sick.URL}.check(t.Context()), "500")
	require.NoError(t, Probe{TCP: sick.Listener.Addr().String()}.check(t.Context()))
	assert.Error(t, Probe{Unix: filepath.Join(t.TempDir(), "none")}.check(t.Context()))
}

func TestClusterNamesTheProcessThatKeepsFailing(t *testing.T) {
	p := exampleProcess(t)
	c := &Cluster{state: state{Machines: []machine{{Processes: []Process{p}}}}}
	for starts, want := range map[int]bool{1: false, tooManyStarts: false, tooManyStarts + 1: true} {
		require.NoError(t, writeJSON(p.Record, Record{Name: p.Name, Starts: starts, LastEnd: "exit status 1"}))
		assert.Equal(t, want, c.failingProcess() != nil, "after %d starts", starts)
	}
}
