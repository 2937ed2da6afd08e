package stops

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

// Stopper runs the hook of a container, and then has the runtime stop it. A containerstop.Stopper implements it.
type Stopper interface {
	Hook(ctx context.Context, o containerstop.Request) (took time.Duration, err error)
	Signal(ctx context.Context, o containerstop.Request, took time.Duration) error
}

// Order is a stop that a controller asks for.
type Order struct {
	// Pod is the key of the pod's passes.
	Pod types.NamespacedName
	// For is the object that asks.
	For memory.Key
	// Request is the container, its hook and its grace period.
	Request containerstop.Request
}

// Stop is how far a stop is, and the object that asked for it.
type Stop struct {
	node.Stop
	For memory.Key
}

// Unsent reports whether the stop has not reached the runtime.
func (s *Stop) Unsent() bool { return s.Stage == node.InHook || s.Stage == node.AfterHook }

// Stops are the stops of a node. They are the agent's knowledge that the cluster does not have; all of it may be lost.
type Stops struct {
	stopper Stopper
	clock   clock.PassiveClock
	run     func(work func())

	mu     sync.Mutex
	pods   map[types.NamespacedName]map[string]*stop // by container ID
	closed bool
	group  sync.WaitGroup
}

type stop struct {
	Stop
	request containerstop.Request
	took    time.Duration // by the hook
	cancel  context.CancelFunc
}

// New makes Stops without any. run runs the work of a stop in parallel to the pass that begins it; nil means in a goroutine.
func New(stopper Stopper, c clock.PassiveClock, run func(work func())) *Stops {
	s := &Stops{
		stopper: stopper,
		clock:   c,
		run:     run,
		pods:    map[types.NamespacedName]map[string]*stop{},
	}
	if run == nil {
		s.run = s.group.Go
	}
	return s
}

// Of returns the stops of a pod, by container ID.
func (s *Stops) Of(pod types.NamespacedName) map[string]Stop {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]Stop, len(s.pods[pod]))
	for id, stop := range s.pods[pod] {
		all[id] = stop.Stop
	}
	return all
}

// Hook begins a stop with the hook of the container, unless the container has a stop or the agent ends. ended is called
// when the hook has ended; with an error, the stop is given up.
func (s *Stops) Hook(ctx context.Context, o Order, ended func(context.Context, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayBegin(&o) {
		return
	}
	s.begin(ctx, o, node.InHook, func(ctx context.Context) {
		took, err := s.stopper.Hook(ctx, o.Request)
		s.hookEnded(&o, took, err)
		ended(ctx, err)
	})
}

// Signal has the runtime stop a container, if the hook of this order has ended and the stop was not given up since; it
// reports whether that is so. ended is called when the runtime has answered.
func (s *Stops) Signal(ctx context.Context, o Order, ended func(context.Context, error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.pods[o.Pod][o.Request.Container.ID]
	if known == nil || known.For != o.For || known.Stage != node.AfterHook {
		return false
	}
	request, took := known.request, known.took
	s.begin(ctx, o, node.Told, func(ctx context.Context) {
		err := s.stopper.Signal(ctx, request, took)
		s.stopEnded(&o, err)
		ended(ctx, err)
	})
	return true
}

// WithoutHook has the runtime stop a container that has no hook, or whose hook an earlier agent has run. It does nothing
// if the container has a stop or the agent ends. ended is called when the runtime has answered.
func (s *Stops) WithoutHook(ctx context.Context, o Order, ended func(context.Context, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayBegin(&o) {
		return
	}
	o.Request.PreStop = nil
	s.begin(ctx, o, node.Told, func(ctx context.Context) {
		_, err := s.stopper.Hook(ctx, o.Request) // it only records the event
		if err == nil {
			err = s.stopper.Signal(ctx, o.Request, 0)
		}
		s.stopEnded(&o, err)
		ended(ctx, err)
	})
}

// mayBegin reports whether a stop may begin: the container has none, or one for another object has ended. The lock is
// held.
func (s *Stops) mayBegin(o *Order) bool {
	known := s.pods[o.Pod][o.Request.Container.ID]
	return !s.closed && (known == nil || known.For != o.For && known.Stage == node.Ended)
}

// begin begins a stage. Its context outlives the pass, and ends when the stop is given up. The lock is held.
func (s *Stops) begin(ctx context.Context, o Order, stage node.Stage, work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if s.pods[o.Pod] == nil {
		s.pods[o.Pod] = map[string]*stop{}
	}
	s.pods[o.Pod][o.Request.Container.ID] = &stop{
		Stop:    Stop{Stop: node.Stop{Request: o.For.UID, Stage: stage}, For: o.For},
		request: o.Request,
		cancel:  cancel,
	}
	s.run(func() {
		defer cancel()
		work(ctx)
	})
}

// hookEnded notes that the hook has ended. A stop that was given up, or that finds no runtime, is not known any more.
func (s *Stops) hookEnded(o *Order, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.drop(o.Pod, o.Request.Container.ID)
		return
	}
	known := s.pods[o.Pod][o.Request.Container.ID]
	known.Stage, known.took = node.AfterHook, took
}

// stopEnded notes that the stop has ended. Without the runtime it counts as never begun: a new attempt is the controller's
// decision. A runtime that is late may have ended the container or not, which its list shows.
func (s *Stops) stopEnded(o *Order, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, containerstop.ErrAborted) || cri.IsUnavailable(err) || cri.IsLate(err) {
		s.drop(o.Pod, o.Request.Container.ID)
		return
	}
	known := s.pods[o.Pod][o.Request.Container.ID]
	known.Stage = node.Ended
	known.Err = err
	known.At = s.clock.Now()
}

// Abort gives up the stops of a pod that are not wanted any more. Stops that have reached the runtime continue.
func (s *Stops) Abort(pod types.NamespacedName, unwanted func(id string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, stop := range s.pods[pod] {
		switch {
		case !unwanted(id):
		case stop.Stage == node.InHook:
			stop.cancel()
		case stop.Stage == node.AfterHook:
			s.drop(pod, id)
		}
	}
}

// DropEnded forgets the stops of a pod that have ended: the containers can be stopped again for the same object.
func (s *Stops) DropEnded(pod types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, stop := range s.pods[pod] {
		if stop.Stage == node.Ended {
			s.drop(pod, id)
		}
	}
}

// Forget gives up the stops of a pod that is gone.
func (s *Stops) Forget(pod types.NamespacedName) {
	s.Abort(pod, func(string) bool { return true })
	s.DropEnded(pod)
}

// drop forgets a stop. The lock is held.
func (s *Stops) drop(pod types.NamespacedName, id string) {
	delete(s.pods[pod], id)
	if len(s.pods[pod]) == 0 {
		delete(s.pods, pod)
	}
}

// Wait prevents new stops and returns when those under way have ended. A stop with a hook that has ended continues.
func (s *Stops) Wait() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.group.Wait()
}
