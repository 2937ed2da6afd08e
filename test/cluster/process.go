package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	restartPause  = time.Second
	probeInterval = 50 * time.Millisecond
)

// Process is a program to keep running: a value, executed by the init of a machine or, in a simulated cluster, by the
// supervisor.
type Process struct {
	// Name is unique in the cluster and names the log, such as n0-kubelet.
	Name string
	Path string
	Args []string
	// Env is added to the environment of the supervisor; later entries take precedence.
	Env []string
	// Log is the file that receives both outputs, appended.
	Log string
	// Record is the file with the process's Record.
	Record string
	// After must all hold before each start.
	After []Probe
}

// Probe is a condition on another process; exactly one field is set.
type Probe struct {
	// TCP is an address that accepts connections.
	TCP string `json:",omitempty"`
	// Unix is a socket that accepts connections.
	Unix string `json:",omitempty"`
	// HTTPS is a URL that answers 200. Its certificate is not verified: the answer is used for nothing else.
	HTTPS string `json:",omitempty"`
}

// Record is the state of a process.
type Record struct {
	Name string
	// Starts counts how often the process was started since its machine booted.
	Starts int
	// Running is false while the process waits for what it needs, or for its restart.
	Running bool
	// LastEnd is how it last ended, empty if it never has.
	LastEnd string `json:",omitempty"`
}

// check returns why the probe does not hold, nil if it does.
func (p Probe) check(ctx context.Context) error {
	network, address := "tcp", p.TCP
	switch {
	case p.HTTPS != "":
		return checkHTTPS(ctx, p.HTTPS)
	case p.Unix != "":
		network, address = "unix", p.Unix
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func checkHTTPS(ctx context.Context, url string) error {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see Probe.HTTPS
		DisableKeepAlives: true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// allHold waits until all probes hold. It returns false if the context ends before.
func allHold(ctx context.Context, probes []Probe) bool {
	for _, probe := range probes {
		for probe.check(ctx) != nil {
			if !pause(ctx, probeInterval) {
				return false
			}
		}
	}
	return ctx.Err() == nil
}

// keepRunning restarts a process until the context ends. run executes it once, with its output to the file, and returns
// how it ended.
func keepRunning(ctx context.Context, p Process, run func(context.Context, Process, *os.File) error) {
	record := Record{Name: p.Name}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		record.LastEnd = err.Error()
		_ = writeJSON(p.Record, record)
		return
	}
	defer func() { _ = log.Close() }()
	for allHold(ctx, p.After) {
		record.Starts++
		record.Running = true
		_ = writeJSON(p.Record, record)
		err := run(ctx, p, log)
		record.Running = false
		record.LastEnd = "exit status 0"
		if err != nil {
			record.LastEnd = err.Error()
		}
		_ = writeJSON(p.Record, record)
		fmt.Fprintf(log, "--- %s ended (%s), starting again\n", p.Name, record.LastEnd)
		if !pause(ctx, restartPause) {
			return
		}
	}
}

// pause waits for d. It returns false if the context ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
