package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// MachineStatus is the state of a machine.
type MachineStatus struct {
	Name string
	// PID is the process ID of its init; 0 if it is stopped.
	PID int
}

// serveControl answers commands until one of them, or the context, ends the cluster. It calls stop before it returns.
func (s *supervisor) serveControl(ctx context.Context, listener net.Listener, stop func()) {
	down := make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /machines", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(s.machineStatus())
	})
	mux.HandleFunc("GET /supervisor", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(os.Getpid())
	})
	mux.HandleFunc("POST /nodes/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		if err := s.commandNode(ctx, r.PathValue("name"), r.PathValue("verb")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("POST /down", func(http.ResponseWriter, *http.Request) {
		stop()
		down <- struct{}{}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	select {
	case <-down:
	case <-ctx.Done():
		stop()
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = server.Shutdown(grace)
	s.log.Print("the cluster has ended")
}

func (s *supervisor) machineStatus() []MachineStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var result []MachineStatus
	for _, m := range s.state.Machines {
		status := MachineStatus{Name: m.Name}
		if running := s.machines[m.Name]; running != nil {
			status.PID = running.pid
		}
		result = append(result, status)
	}
	return result
}

func (s *supervisor) commandNode(ctx context.Context, name, verb string) error {
	m, err := s.state.node(name)
	if err != nil {
		return err
	}
	switch verb {
	case "stop":
		return s.crash(name)
	case "start":
		return s.bootNode(ctx, m)
	}
	return fmt.Errorf("unknown command %q", verb)
}

// control sends a command to the supervisor and decodes its answer into answer unless that is nil. The error is
// ErrNotRunning if no supervisor listens.
func (c *Cluster) control(ctx context.Context, method, path string, answer any) error {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", c.state.layout().socket())
		},
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if dialError := new(net.OpError); errors.As(err, &dialError) && dialError.Op == "dial" {
		return ErrNotRunning
	}
	if err != nil {
		return fmt.Errorf("talk to the supervisor: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(response.Body)
		return errors.New(strings.TrimSpace(string(reason)))
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
