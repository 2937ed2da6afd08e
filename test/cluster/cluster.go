package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrNotRunning means that there is no such cluster.
var ErrNotRunning = errors.New("the cluster does not run")

// Cluster is a running cluster. Several programs may use the same one.
type Cluster struct {
	state  state
	config *rest.Config
	client kubernetes.Interface
	stop   context.CancelFunc // ends simulated nodes that this process runs; may be nil
}

// Check returns everything that prevents real nodes on this machine, nil if they can run.
func Check(ctx context.Context) error { return checkRequirements(ctx) }

// Start starts a cluster and returns when it is ready: its nodes, its default service account, its StorageClass. It
// builds missing binaries first, which takes minutes the first time. A cluster of the same name that already runs is
// used unchanged; it is an error if the options ask for another version or number of nodes. A cluster that does not
// become ready is kept, so that it can be inspected: Remove ends it.
func Start(ctx context.Context, wanted Options) (*Cluster, error) {
	options, err := wanted.complete()
	if err != nil {
		return nil, err
	}
	if !options.Simulated {
		if err := Check(ctx); err != nil {
			return nil, fmt.Errorf("real nodes cannot run here (simulated ones can): %w", err)
		}
	}
	c, err := Attach(ctx, options)
	if errors.Is(err, ErrNotRunning) {
		c, err = launch(ctx, options)
	}
	if err != nil {
		return nil, err
	}
	if err := c.matches(wanted); err != nil {
		return nil, err
	}
	if err := c.awaitReady(ctx, options); err != nil {
		return nil, err
	}
	if options.Simulated && options.SimulatedNodes != nil {
		simulating, stop := context.WithCancel(ctx)
		c.stop = stop
		go func() {
			if err := options.SimulatedNodes(simulating, c.RESTConfig(), options.nodeCount()); err != nil {
				fmt.Fprintf(options.Out, "simulated nodes: %v\n", err)
			}
		}()
	}
	return c, nil
}

// Attach returns a running cluster by name. It uses only Name and Cache of the options. The error is ErrNotRunning if
// it does not run.
func Attach(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	s, err := readState(layoutOf(options.Cache, options.Name))
	if err != nil {
		return nil, err
	}
	c := &Cluster{state: s}
	if err := c.control(ctx, "GET", "/machines", nil); err != nil {
		return nil, err
	}
	c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	c.config.QPS, c.config.Burst = 200, 400
	c.client, err = kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return c, nil
}

// launch builds, prepares and starts a cluster that does not run.
func launch(ctx context.Context, options Options) (*Cluster, error) {
	scope := Everything
	if options.Simulated {
		scope = ControlPlane
	}
	binaries, err := Build(ctx, options, scope)
	if err != nil {
		return nil, err
	}
	var runc runtimeChoice
	if !options.Simulated {
		if runc, err = chooseRunc(ctx, options); err != nil {
			return nil, err
		}
	}
	unlock, err := lockFile(ctx, filepath.Join(options.Cache, "start.lock"), func() {
		fmt.Fprintln(options.Out, "waiting for another cluster to start")
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c, err := Attach(ctx, options); !errors.Is(err, ErrNotRunning) {
		return c, err // another process was faster
	}
	if err := remove(ctx, options.Cache, options.Name); err != nil {
		return nil, fmt.Errorf("remove what an earlier cluster left: %w", err)
	}
	p, err := prepare(ctx, options, binaries, runc)
	if err != nil {
		err = fmt.Errorf("prepare cluster %s: %w", options.Name, err)
		return nil, errors.Join(err, remove(ctx, options.Cache, options.Name))
	}
	defer p.close()
	return startSupervisor(ctx, options, p)
}

// startSupervisor starts the supervisor and returns when it answers, after all machines have booted.
func startSupervisor(ctx context.Context, options Options, p prepared) (*Cluster, error) {
	l := p.state.layout()
	log, err := os.Create(l.log("supervisor"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), l.command(), roleSupervisor, string(l))
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = p.listeners
	cmd.SysProcAttr = detachedAttributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if c, err := Attach(ctx, options); !errors.Is(err, ErrNotRunning) {
			return c, err
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("the supervisor ended: %w%s", err, logHint(l.log("supervisor")))
		case <-ctx.Done():
			return nil, fmt.Errorf("start the supervisor: %w", ctx.Err())
		case <-time.After(probeInterval):
		}
	}
}

// matches returns an error if the running cluster differs from the options.
func (c *Cluster) matches(wanted Options) error {
	s := c.state
	if (wanted.Nodes == 0 || s.Nodes == wanted.nodeCount()) &&
		(wanted.Kubernetes == "" || s.Kubernetes == wanted.Kubernetes) && s.Simulated == wanted.Simulated {
		return nil
	}
	return fmt.Errorf("cluster %s runs already, with Kubernetes %s and %d nodes (simulated: %t): take it down first",
		s.Name, s.Kubernetes, s.Nodes, s.Simulated)
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.state.Name }

// RESTConfig returns a client configuration of the administrator. The caller may change it.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.state.layout().kubeconfig("admin") }

// Kubectl returns the path of a kubectl of the cluster's version.
func (c *Cluster) Kubectl() string { return filepath.Join(c.state.Binaries, "kubectl") }

// AuditLog returns the path of the API server's audit log. It has one line with a JSON object for every write, and for
// every read by a service account.
func (c *Cluster) AuditLog() string { return c.state.layout().path("audit.log") }

// Down ends the cluster and removes everything of it except the cache of binaries.
func (c *Cluster) Down(ctx context.Context) error {
	if c.stop != nil {
		c.stop()
	}
	if err := c.control(ctx, "POST", "/down", nil); err != nil && !errors.Is(err, ErrNotRunning) {
		return fmt.Errorf("end cluster %s: %w", c.Name(), err)
	}
	return remove(ctx, filepath.Dir(filepath.Dir(c.state.Folder)), c.Name())
}

// Remove ends a cluster by name, in any state, and removes everything of it. The error is ErrNotRunning if there is
// none.
func Remove(ctx context.Context, options Options) error {
	options, err := options.complete()
	if err != nil {
		return err
	}
	c, err := Attach(ctx, options)
	if err == nil {
		return c.Down(ctx)
	}
	if _, statErr := os.Stat(string(layoutOf(options.Cache, options.Name))); statErr != nil {
		return ErrNotRunning
	}
	return remove(ctx, options.Cache, options.Name)
}

// remove cleans up after a supervisor that has ended or is ending.
func remove(ctx context.Context, cache, name string) error {
	l := layoutOf(cache, name)
	if _, err := os.Stat(string(l)); err != nil {
		return nil
	}
	unlock, err := lockFile(ctx, l.lock(), func() {}) // held by the supervisor until it ends
	if err != nil {
		return err
	}
	defer unlock()
	if err := removeCgroup(cgroupOf(name)); err != nil {
		return err
	}
	err = os.RemoveAll(string(l))
	for attempt := 0; err != nil && attempt < 20; attempt++ { // the last processes may still be ending
		if !pause(ctx, probeInterval) {
			break
		}
		err = os.RemoveAll(string(l))
	}
	if err != nil {
		return fmt.Errorf("remove state folder: %w", err)
	}
	_ = os.Remove(filepath.Dir(string(l))) // unless there are other clusters
	return nil
}
