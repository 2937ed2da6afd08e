package cluster

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
)

// Descriptors that Start hands to the supervisor, after the three standard ones.
const (
	apiDescriptor      = 3
	registryDescriptor = 4
)

// supervisor is the parent of all processes of a cluster.
type supervisor struct {
	state state
	log   *log.Logger
	net   *network // nil in a simulated cluster

	mu       sync.Mutex
	machines map[string]*runningMachine
}

// runningMachine is a machine's init.
type runningMachine struct {
	pid  int
	kill func() error
	done chan struct{} // closed when the init, and with it all of the machine, is gone
}

// supervise runs the cluster that is prepared in a state folder, until it is asked to stop by its socket or by a
// signal, or until a required part fails.
func supervise(ctx context.Context, folder string, simulate SimulatedNodes) error {
	logger := log.New(os.Stderr, "", log.LstdFlags|log.Lmicroseconds)
	l := layout(folder)
	st, err := readState(l)
	if err != nil {
		return fmt.Errorf("read the cluster's state: %w", err)
	}
	unlock, err := lockFile(ctx, l.lock(), func() { logger.Print("another supervisor is still ending") })
	if err != nil {
		return err
	}
	defer unlock()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s := &supervisor{
		state:    st,
		log:      logger,
		machines: map[string]*runningMachine{},
	}
	control, err := new(net.ListenConfig).Listen(ctx, "unix", l.socket())
	if err != nil {
		return fmt.Errorf("listen for commands: %w", err)
	}
	run := s.runMachines
	if st.Simulated {
		run = func(ctx context.Context) (func(), error) { return s.runPlain(ctx, simulate), nil }
	}
	stopAll, err := run(ctx)
	if err != nil {
		s.stopAll()
		return err
	}
	s.serveControl(ctx, control, stopAll)
	return nil
}

// runMachines boots the control plane and all nodes, and opens the loopback ports. The function it returns ends them.
func (s *supervisor) runMachines(ctx context.Context) (func(), error) {
	controlPlane := s.state.Machines[0]
	err := s.boot(ctx, controlPlane, func(pid int) (err error) {
		s.net, err = makeNetwork(pid)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, m := range s.state.Machines[1:] {
		if err := s.bootNode(ctx, m); err != nil {
			return nil, err
		}
	}
	if err := s.openPorts(ctx); err != nil {
		return nil, err
	}
	return s.stopAll, nil
}

func (s *supervisor) bootNode(ctx context.Context, m machine) error {
	return s.boot(ctx, m, func(pid int) error { return s.net.attach(m.Index, pid, s.state.Nodes) })
}

// boot starts a machine unless it runs.
func (s *supervisor) boot(ctx context.Context, m machine, connect func(pid int) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machines[m.Name] != nil {
		return nil
	}
	running, err := startMachine(ctx, s.state.layout(), m, connect)
	if err != nil {
		return fmt.Errorf("boot machine %s: %w", m.Name, err)
	}
	s.log.Printf("machine %s runs with process ID %d", m.Name, running.pid)
	s.machines[m.Name] = running
	go func() {
		<-running.done
		s.log.Printf("machine %s is gone", m.Name)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.machines[m.Name] == running {
			delete(s.machines, m.Name)
		}
	}()
	return nil
}

// crash kills all processes of a machine, and returns when they have ended.
func (s *supervisor) crash(name string) error {
	s.mu.Lock()
	running := s.machines[name]
	s.mu.Unlock()
	if running == nil {
		return nil
	}
	if err := running.kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end machine %s: %w", name, err)
	}
	<-running.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.machines[name] == running {
		delete(s.machines, name)
	}
	return nil
}

func (s *supervisor) stopAll() {
	var all sync.WaitGroup
	for _, m := range s.state.Machines {
		all.Go(func() {
			if err := s.crash(m.Name); err != nil {
				s.log.Print(err)
			}
		})
	}
	all.Wait()
	if s.net != nil {
		s.net.close()
	}
}

// openPorts forwards ports between the machine's loopback and the control plane's.
func (s *supervisor) openPorts(ctx context.Context) error {
	inbound := []struct {
		name             string
		descriptor, port int
	}{{"api", apiDescriptor, apiPort}, {"registry", registryDescriptor, registryPort}}
	for _, in := range inbound {
		listener, err := inheritListener(in.name, in.descriptor)
		if err != nil {
			return err
		}
		go relay{in.name, listener, func(ctx context.Context) (net.Conn, error) {
			return s.net.dial(ctx, loopback(in.port))
		}, s.log}.serve(ctx)
	}
	for _, port := range s.state.HostPorts {
		listener, err := s.net.listen(ctx, loopback(port))
		if err != nil {
			return fmt.Errorf("listen for port %d of the machine: %w", port, err)
		}
		go relay{fmt.Sprintf("host port %d", port), listener, func(ctx context.Context) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "tcp", loopback(port))
		}, s.log}.serve(ctx)
	}
	return nil
}

func inheritListener(name string, descriptor int) (net.Listener, error) {
	file := os.NewFile(uintptr(descriptor), name)
	defer func() { _ = file.Close() }()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("inherit the listener of %s: %w", name, err)
	}
	return listener, nil
}

// runPlain runs a simulated cluster: the control plane's processes, and the simulated nodes if simulate is set.
func (s *supervisor) runPlain(ctx context.Context, simulate SimulatedNodes) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, p := range s.state.Machines[0].Processes {
		all.Go(func() { keepRunning(ctx, p, runChild) })
	}
	if simulate != nil && s.state.Nodes > 0 {
		all.Go(func() { s.simulateNodes(ctx, simulate) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func (s *supervisor) simulateNodes(ctx context.Context, simulate SimulatedNodes) {
	config, err := clientcmd.BuildConfigFromFlags("", s.state.layout().kubeconfig("admin"))
	if err != nil {
		s.log.Printf("simulated nodes: %v", err)
		return
	}
	if !allHold(ctx, []Probe{{HTTPS: config.Host + "/readyz"}}) {
		return
	}
	if err := simulate(ctx, config, s.state.Nodes); err != nil && ctx.Err() == nil {
		s.log.Printf("simulated nodes: %v", err)
	}
}
