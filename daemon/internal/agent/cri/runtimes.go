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
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

const (
	// lookPause lies between two looks at the sockets, searchPause while no runtime answers.
	lookPause   = 10 * time.Second
	searchPause = time.Second
	// probeTimeout is how long a runtime may take to tell its version.
	probeTimeout = 10 * time.Second
)

// errNone begins what is said while no socket is there.
var errNone = errors.New("no container runtime found")

// Config has the paths of runtimes.
type Config struct {
	// Root is the folder that holds the host's /var/run or parts of it.
	Root string
	// SocketFile is the one socket to use, relative to Root; empty means all known ones.
	SocketFile string
	Metrics    *metrics.Metrics
	Clock      clock.Clock
	Log        logr.Logger
	// Changed is called when runtimes come or go; nil for nobody.
	Changed func()
}

// Runtimes are the container runtimes of the node. They come and go.
type Runtimes struct {
	config Config
	paths  []string // the order decides which runtime pulls images

	mu    sync.RWMutex
	known map[string]*connection // by path
	told  string                 // what was logged last
	doubt chan struct{}          // has an element when a call has found a runtime away
}

// connection is a runtime and what its last probe said.
type connection struct {
	runtime *Runtime // nil while it could not be reached at all
	err     error
}

// New makes Runtimes that know none yet.
func New(config Config) *Runtimes {
	return &Runtimes{
		config: config, paths: candidates(config.Root, config.SocketFile), known: map[string]*connection{},
		doubt: make(chan struct{}, 1),
	}
}

// Start looks for runtimes and probes them until ctx ends.
func (r *Runtimes) Start(ctx context.Context) error {
	defer r.closeAll(ctx)
	for {
		r.Look(ctx)
		pause, doubt := lookPause, r.doubt
		if r.Ready() != nil {
			pause, doubt = searchPause, nil
		}
		timer := r.config.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-doubt:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// doubted requests a probe soon.
func (r *Runtimes) doubted() {
	select {
	case r.doubt <- struct{}{}:
	default:
	}
}

// Look connects to sockets that are new, probes those that are known and forgets those that are gone. Start
// does so again and again; call it before only, so that what is there is known from the beginning.
func (r *Runtimes) Look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var group sync.WaitGroup
	for _, path := range r.paths {
		group.Go(func() { r.store(ctx, path, r.lookAt(ctx, path)) })
	}
	group.Wait()
	r.tell()
}

// lookAt returns what is at a path; nil for nothing.
func (r *Runtimes) lookAt(ctx context.Context, path string) *connection {
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
	case isSocket(path):
		made, err := connect(ctx, path, r.config.Metrics, r.doubted)
		return &connection{runtime: made, err: err}
	default:
		return nil
	}
}

func (r *Runtimes) store(ctx context.Context, path string, now *connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.known[path]
	if now != nil {
		r.known[path] = now
		return
	}
	delete(r.known, path)
	if before != nil && before.runtime != nil {
		_ = before.runtime.close(ctx) // nothing is lost with a connection to nobody
	}
}

func (r *Runtimes) closeAll(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, c := range r.known {
		if c.runtime != nil {
			_ = c.runtime.close(ctx)
		}
		delete(r.known, path)
	}
}

// tell logs and measures the state, the former when it changes only.
func (r *Runtimes) tell() {
	text, ready := "Container runtime answers", 1.0
	if err := r.Ready(); err != nil {
		text, ready = err.Error(), 0
	}
	r.config.Metrics.RuntimeReady.Set(ready)
	if r.told != text {
		r.config.Log.Info("State of container runtimes", "state", text, "names", r.names())
		r.told = text
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
// what was tried.
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
		return nil, fmt.Errorf("%w, tried %s", errNone, strings.Join(r.paths, ", "))
	}
	return nil, errors.Join(troubles...)
}

// All returns the runtimes that were found, those that do not answer now included.
func (r *Runtimes) All() []*Runtime {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []*Runtime
	for _, path := range r.paths {
		if c := r.known[path]; c != nil && c.runtime != nil {
			all = append(all, c.runtime)
		}
	}
	return all
}

// Of returns the runtime that keeps a container, by the name in the container's ID.
func (r *Runtimes) Of(containerID string) (*Runtime, error) {
	name, _ := SplitID(containerID)
	if name == "" {
		return nil, fmt.Errorf("container ID %q names no runtime", containerID)
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

// Containers lists the containers of a pod in all runtimes. It fails when one of them does: a list with
// holes would look as if containers had ended.
func (r *Runtimes) Containers(ctx context.Context, namespace, name string) ([]Container, error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	var all []Container
	for _, one := range r.All() {
		list, err := one.Containers(ctx, namespace, name)
		if err != nil {
			return nil, fmt.Errorf("list containers in %s: %w", one.Name(), err)
		}
		all = append(all, list...)
	}
	return all, nil
}
