package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"
)

// prepared is a cluster whose files are written and whose loopback ports are open, so that no other process takes them.
// The supervisor inherits the listeners.
type prepared struct {
	state     state
	listeners []*os.File
}

func (p prepared) close() {
	for _, file := range p.listeners {
		_ = file.Close()
	}
}

// prepare writes everything that a cluster needs below its state folder.
func prepare(ctx context.Context, options Options, binaries Binaries, runc runtimeChoice) (p prepared, err error) {
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	l := layoutOf(options.Cache, options.Name)
	for _, folder := range []string{"pki", "log", "processes", "volumes", "registry"} {
		if err := os.MkdirAll(l.path(folder), 0o755); err != nil {
			return p, fmt.Errorf("make state folder: %w", err)
		}
	}
	if err := prepareDatabase(options, l); err != nil {
		return p, err
	}
	if err := installCommand(ctx, options, l); err != nil {
		return p, err
	}
	p.state = state{
		Name:           options.Name,
		Kubernetes:     options.Kubernetes,
		Nodes:          options.nodeCount(),
		Simulated:      options.Simulated,
		NodeGrace:      options.NodeGrace,
		Folder:         string(l),
		Binaries:       binaries.Kubernetes,
		Containerd:     binaries.containerd,
		SandboxProgram: binaries.pause,
		HostPorts:      options.HostPorts,
	}
	ends := realEndpoints()
	if options.Simulated {
		ends, err = p.choosePorts(options)
	} else {
		err = p.openPorts(options)
	}
	if err != nil {
		return p, err
	}
	if err := writeCredentials(p.state, ends, time.Now()); err != nil {
		return p, err
	}
	cp := controlPlane{state: p.state, endpoints: ends}
	if options.Simulated {
		p.state.Machines = []machine{{
			Name:      controlPlaneName,
			Index:     -1,
			Processes: cp.processes(),
		}}
		return p, p.state.write()
	}
	p.state.Machines = []machine{cp.machine()}
	if err := p.addNodes(binaries, runc); err != nil {
		return p, err
	}
	return p, p.state.write()
}

// prepareDatabase makes the folder of etcd's data, empty or with a copy of a kept database.
func prepareDatabase(options Options, l layout) error {
	if options.Database != "" {
		return copyDatabase(options.Database, l.path("etcd"))
	}
	if err := os.MkdirAll(l.path("etcd"), 0o755); err != nil {
		return fmt.Errorf("make the database's folder: %w", err)
	}
	return nil
}

// addNodes writes the configuration of all nodes.
func (p *prepared) addNodes(binaries Binaries, runc runtimeChoice) error {
	l := p.state.layout()
	runc, err := runc.wrapped(l)
	if err != nil {
		return fmt.Errorf("wrap runc: %w", err)
	}
	parts := nodeParts{
		state:       p.state,
		binaries:    binaries,
		runc:        runc,
		snapshotter: chooseSnapshotter(string(l)),
	}
	for i := range p.state.Nodes {
		p.state.Machines = append(p.state.Machines, parts.machine(i))
		files, err := parts.files(i)
		if err != nil {
			return err
		}
		if err := writeFiles(files); err != nil {
			return err
		}
	}
	return nil
}

// openPorts opens the loopback ports of a real cluster.
func (p *prepared) openPorts(options Options) error {
	for _, want := range []struct {
		wanted, preferred int
		chosen            *int
	}{
		{options.APIPort, defaultAPIPort, &p.state.APIPort},
		{options.RegistryPort, defaultRegistryPort, &p.state.RegistryPort},
	} {
		listener, err := listenLoopback(want.wanted, want.preferred)
		if err != nil {
			return err
		}
		*want.chosen = portOf(listener)
		file, err := listener.File() // a copy: the port stays open in it
		_ = listener.Close()
		if err != nil {
			return fmt.Errorf("pass on a listener: %w", err)
		}
		p.listeners = append(p.listeners, file)
	}
	return nil
}

// choosePorts finds ports for the plain processes of a simulated cluster.
func (p *prepared) choosePorts(options Options) (endpoints, error) {
	listener, err := listenLoopback(options.APIPort, defaultAPIPort)
	if err != nil {
		return endpoints{}, err
	}
	defer listener.Close()
	ports, err := freePorts(2)
	if err != nil {
		return endpoints{}, err
	}
	p.state.APIPort = portOf(listener)
	return endpoints{
		etcd:     loopback(ports[0]),
		etcdPeer: loopback(ports[1]),
		// The API server rejects a loopback address here. No client uses this one.
		apiBind:      "127.0.0.1",
		apiAdvertise: controlPlaneAddress,
		apiPort:      p.state.APIPort,
	}, nil
}

// installCommand puts the command that plays all roles into the state folder, because `go run` deletes its command when
// it ends. A test binary is not that command, so it builds the command.
func installCommand(ctx context.Context, options Options, l layout) error {
	info, ok := debug.ReadBuildInfo()
	source, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the own command: %w", err)
	}
	if !ok || info.Path != commandPackage {
		source = filepath.Join(options.Cache, "bin", "cluster-command")
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", source, commandPackage)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", commandPackage, err, saidByGo(out))
		}
	}
	if err := copyFile(source, l.command()); err != nil {
		return fmt.Errorf("copy the own command: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return err
	}
	return target.Close()
}

func writeFiles(files map[string][]byte) error {
	for path, data := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
