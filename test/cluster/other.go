//go:build !linux

package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
)

// network is empty: this system has no network namespaces.
type network struct{}

var errNotLinux = errors.New("real nodes need Linux, this is " + runtime.GOOS)

func makeNetwork(int) (*network, error)                               { return nil, errNotLinux }
func (*network) attach(int, int, int) error                           { return errNotLinux }
func (*network) close()                                               {}
func (*network) dial(context.Context, string) (net.Conn, error)       { return nil, errNotLinux }
func (*network) listen(context.Context, string) (net.Listener, error) { return nil, errNotLinux }
func runMachine(context.Context, io.Reader) error                     { return errNotLinux }
func checkRequirements(context.Context) error                         { return errNotLinux }
func removeCgroup(string) error                                       { return nil }
func chooseSnapshotter(string) string                                 { return "" }
func memoryOf(int, []MachineStatus) ([]Memory, error)                 { return nil, errNotLinux }
func childAttributes() *syscall.SysProcAttr                           { return nil }
func startMachine(context.Context, layout, machine, func(int) error) (*runningMachine, error) {
	return nil, errNotLinux
}

// DialContext opens a TCP connection from inside the cluster's network. It always fails on this system.
func (c *Cluster) DialContext(context.Context, string) (net.Conn, error) { return nil, errNotLinux }

// Kill ends a process of a machine. It always fails on this system.
func (c *Cluster) Kill(context.Context, string) error { return errNotLinux }

// SignalContainer sends a signal to the processes of a container. It always fails on this system.
func (c *Cluster) SignalContainer(string, syscall.Signal) error { return errNotLinux }

// Unplug takes the node off the network. It always fails on this system.
func (n Node) Unplug(context.Context) error { return errNotLinux }

// Plug ends Unplug. It always fails on this system.
func (n Node) Plug(context.Context) error { return errNotLinux }
