package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

const (
	// probePeriod is the time between two probes of the sockets; searchPeriod is used while no runtime answers.
	probePeriod  = 10 * time.Second
	searchPeriod = time.Second
	// probeTimeout is how long a runtime may take to return its version.
	probeTimeout = 10 * time.Second
	// longestPause is the longest time between two attempts to connect to a socket behind which there is no CRI, such as
	// the socket of a containerd that serves Docker only.
	longestPause = 30 * time.Second
)

// noneReadyError is the reason why no runtime can be used.
type noneReadyError struct{ error }

func (e noneReadyError) Unwrap() error { return e.error }

// Config has the paths of runtimes.
type Config struct {
	// Root is the folder that holds the host's /var/run or parts of it.
	Root string
	// SocketFile is the one socket to use, relative to Root; empty means all known ones.
	SocketFile string
	Metrics    *metrics.Metrics
	Clock      clock.Clock
	Log        logr.Logger
	// Changed is called when runtimes come or go; nil for no call.
	Changed func()
}

// Runtimes are the container runtimes of the node. They come and go.
type Runtimes struct {
	config Config
	paths  []string // the order decides which runtime pulls images

	mu       sync.RWMutex
	known    map[string]*connection // by path
	logged   string                 // the state that was logged last
	probeNow chan struct{}          // has an element when a call found a runtime unavailable
}

// connection is a runtime and the result of its last probe.
type connection struct {
	runtime *Runtime // nil while it could not be reached at all
	err     error
	// pause is the time without new attempts to connect, and until its end. Zero if the next probe connects again.
	pause time.Duration
	until time.Time
}

// New makes Runtimes that know none yet.
func New(config Config) *Runtimes {
	return &Runtimes{
		config:   config,
		paths:    candidates(config.Root, config.SocketFile),
		known:    map[string]*connection{},
		probeNow: make(chan struct{}, 1),
	}
}

// Start searches for runtimes and probes them until ctx ends.
func (r *Runtimes) Start(ctx context.Context) error {
	defer r.closeAll()
	for {
		r.Probe(ctx)
		period, probeNow := probePeriod, r.probeNow
		if r.Ready() != nil {
			period, probeNow = searchPeriod, nil
		}
		timer := r.config.Clock.NewTimer(period)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-probeNow:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// requestProbe requests a probe soon.
func (r *Runtimes) requestProbe() {
	select {
	case r.probeNow <- struct{}{}:
	default:
	}
}

// Probe connects to sockets that are new, probes those that are known and forgets those that are gone. Start
// calls it periodically. Call it once before Start, so that existing runtimes are known from the beginning.
func (r *Runtimes) Probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var group sync.WaitGroup
	for _, path := range r.paths {
		group.Go(func() { r.store(path, r.probeSocket(ctx, path)) })
	}
	group.Wait()
	r.report()
}

// probeSocket returns the connection to the runtime at a path; nil if there is none.
func (r *Runtimes) probeSocket(ctx context.Context, path string) *connection {
	r.mu.RLock()
	known := r.known[path]
	r.mu.RUnlock()
	switch {
	case known != nil && known.runtime != nil:
		err := known.runtime.probe(ctx)
		if err != nil && !isSocket(path) {
			return nil
		}
		return &connection{runtime: known.runtime, err: err}
	case !isSocket(path):
		return nil
	case known != nil && r.config.Clock.Now().Before(known.until):
		return known
	}
	made, err := connect(ctx, path, r.config.Metrics, r.requestProbe)
	now := &connection{runtime: made, err: err}
	if status.Code(err) == codes.Unimplemented {
		now.pause = searchPeriod
		if known != nil {
			now.pause = min(max(2*known.pause, searchPeriod), longestPause)
		}
		now.until = r.config.Clock.Now().Add(now.pause)
	}
	return now
}

func (r *Runtimes) store(path string, now *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.known[path]
	if now != nil {
		r.known[path] = now
		return
	}
	delete(r.known, path)
	if before != nil && before.runtime != nil {
		_ = before.runtime.close() // the runtime is gone: an error changes nothing
	}
}

func (r *Runtimes) closeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, c := range r.known {
		if c.runtime != nil {
			_ = c.runtime.close()
		}
		delete(r.known, path)
	}
}

// report sets the metric of the state, and logs the state when it has changed.
func (r *Runtimes) report() {
	text, ready := "Container runtime answers", 1.0
	if err := r.Ready(); err != nil {
		text, ready = err.Error(), 0
	}
	r.config.Metrics.RuntimeReady.Set(ready)
	if r.logged != text {
		r.config.Log.Info("State of container runtimes", "state", text, "names", r.names())
		r.logged = text
		if r.config.Changed != nil {
			r.config.Changed()
		}
	}
}

func (r *Runtimes) names() []string {
	var names []string
	for _, one := range r.All() {
		names = append(names, one.Name())
	}
	return names
}

// Ready returns why no runtime can be used; nil if one answered the last probe.
func (r *Runtimes) Ready() error {
	_, err := r.ForImages()
	return err
}

// ForImages returns the runtime that keeps images: the first that answered the last probe. The error names
// the sockets that were tried.
func (r *Runtimes) ForImages() (*Runtime, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var troubles []error
	for _, path := range r.paths {
		c := r.known[path]
		if c == nil {
			continue
		}
		if c.err == nil {
			return c.runtime, nil
		}
		troubles = append(troubles, fmt.Errorf("container runtime at %s: %w", path, c.err))
	}
	if len(troubles) == 0 {
		return nil, noneReadyError{fmt.Errorf("no container runtime found, tried %s", strings.Join(r.paths, ", "))}
	}
	return nil, noneReadyError{errors.Join(troubles...)}
}

// All returns the runtimes that were found, those that do not answer now included.
func (r *Runtimes) All() []*Runtime {
	var all []*Runtime
	for _, c := range r.connections() {
		all = append(all, c.runtime)
	}
	return all
}

// connections returns the connections to the runtimes that were found, with the result of the last probe of each.
func (r *Runtimes) connections() []connection {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []connection
	for _, path := range r.paths {
		if c := r.known[path]; c != nil && c.runtime != nil {
			all = append(all, *c)
		}
	}
	return all
}

// ForContainer returns the runtime that keeps a container, by the name in the container's ID.
func (r *Runtimes) ForContainer(containerID string) (*Runtime, error) {
	name, _ := splitID(containerID)
	if name == "" {
		return nil, fmt.Errorf("container ID %q has no runtime", containerID)
	}
	all := r.All()
	if i := slices.IndexFunc(all, func(one *Runtime) bool { return one.Name() == name }); i >= 0 {
		return all[i], nil
	}
	if err := r.Ready(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("no container runtime named %s on this node", name)
}

// Status returns the state and the times of a container, by its runtime.
func (r *Runtimes) Status(ctx context.Context, containerID string) (Status, error) {
	runtime, err := r.ForContainer(containerID)
	if err != nil {
		return Status{}, err
	}
	return runtime.Status(ctx, containerID)
}

// Details returns what Status does and the environment of a container, if its runtime reports it.
func (r *Runtimes) Details(ctx context.Context, containerID string) (Status, error) {
	runtime, err := r.ForContainer(containerID)
	if err != nil {
		return Status{}, err
	}
	return runtime.Details(ctx, containerID)
}

// Env reads the environment of a container by a command in it.
func (r *Runtimes) Env(ctx context.Context, containerID string) (map[string]string, error) {
	runtime, err := r.ForContainer(containerID)
	if err != nil {
		return nil, err
	}
	return runtime.Env(ctx, containerID)
}

// Containers lists the containers of a pod in all runtimes. ids are the container IDs by which the cluster knows the pod. A
// runtime that keeps one of them must answer: a list with missing containers would look as if they had ended. Another one
// may fail, for example one that was shut down and has left its socket. Without ids, all runtimes must answer.
func (r *Runtimes) Containers(ctx context.Context, namespace, name string, ids []string) ([]Container, error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	var all []Container
	for _, c := range r.connections() {
		needed := keepsAny(c.runtime.Name(), ids)
		if c.err != nil && !needed {
			continue // its calls would only time out
		}
		list, err := c.runtime.Containers(ctx, namespace, name)
		switch {
		case err != nil && needed:
			return nil, fmt.Errorf("list containers in %s: %w", c.runtime.Name(), err)
		case err == nil:
			all = append(all, list...)
		}
	}
	return all, nil
}

// keepsAny reports whether a runtime keeps one of the containers, which is unknown without IDs.
func keepsAny(runtime string, ids []string) bool {
	known := false
	for _, id := range ids {
		name, _ := splitID(id)
		if name == runtime {
			return true
		}
		known = known || name != ""
	}
	return !known
}
