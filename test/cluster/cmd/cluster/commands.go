package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/flotilla-project/flotilla/test/cluster"
)

const followInterval = 200 * time.Millisecond

func (c *command) up(ctx context.Context) error {
	began := time.Now()
	running, err := cluster.Start(ctx, c.options)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.errOut, "cluster %s is up after %.1f s\n", running.Name(), time.Since(began).Seconds())
	if registry := running.Registry(); registry != "" {
		fmt.Fprintf(c.errOut, "images pushed to %s are there for all nodes, under any registry's name\n", registry)
	}
	fmt.Fprintf(c.out, "export KUBECONFIG=%s\n", running.Kubeconfig())
	return nil
}

func (c *command) down(ctx context.Context) error {
	began := time.Now()
	err := cluster.Remove(ctx, c.options)
	if errors.Is(err, cluster.ErrNotRunning) {
		fmt.Fprintf(c.errOut, "cluster %s does not run\n", c.options.Name)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.errOut, "cluster %s is down after %.1f s\n", c.options.Name, time.Since(began).Seconds())
	return nil
}

func (c *command) status(ctx context.Context) error {
	running, err := cluster.Attach(ctx, c.options)
	if err != nil {
		return err
	}
	status, err := running.Status(ctx)
	if err != nil {
		return err
	}
	if err := printStatus(c.out, running.Name(), status); err != nil {
		return err
	}
	return c.runKubectl(ctx, running, []string{"get", "nodes", "-o", "wide"})
}

func printStatus(out io.Writer, name string, status cluster.Status) error {
	fmt.Fprintf(out, "cluster %s, Kubernetes %s, API on 127.0.0.1:%d", name, status.Kubernetes, status.APIPort)
	if status.RegistryPort != 0 {
		fmt.Fprintf(out, ", registry on 127.0.0.1:%d", status.RegistryPort)
	}
	fmt.Fprint(out, "\n\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !status.Simulated {
		fmt.Fprintln(table, "MACHINE\tSTATE\tPROCESS ID")
		for _, m := range status.Machines {
			state := "runs"
			if m.PID == 0 {
				state = "stopped"
			}
			fmt.Fprintf(table, "%s\t%s\t%d\n", m.Name, state, m.PID)
		}
		fmt.Fprintln(table)
	}
	fmt.Fprintln(table, "PROCESS\tSTARTS\tRUNS\tLAST END")
	for _, p := range status.Processes {
		fmt.Fprintf(table, "%s\t%d\t%t\t%s\n", p.Name, p.Starts, p.Running, p.LastEnd)
	}
	fmt.Fprintln(table, "\nMEMORY OF\tPROGRAM\tPROCESSES\tMIB")
	var total int64
	for _, m := range status.Memory {
		total += m.Bytes
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", m.Machine, m.Program, m.Processes, m.Bytes>>20)
	}
	fmt.Fprintf(table, "all\t\t\t%d\n\n", total>>20)
	return table.Flush()
}

func (c *command) kubectl(ctx context.Context) error {
	running, err := cluster.Attach(ctx, c.options)
	if err != nil {
		return err
	}
	return c.runKubectl(ctx, running, c.args)
}

func (c *command) runKubectl(ctx context.Context, running *cluster.Cluster, args []string) error {
	cmd := exec.CommandContext(ctx, running.Kubectl(), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+running.Kubeconfig())
	cmd.Stdin = os.Stdin
	cmd.Stdout = c.out
	cmd.Stderr = c.errOut
	err := cmd.Run()
	if ended := new(exec.ExitError); errors.As(err, &ended) {
		return exitError(ended.ExitCode())
	}
	return err
}

func (c *command) kubeconfig(ctx context.Context) error {
	running, err := cluster.Attach(ctx, c.options)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, running.Kubeconfig())
	return nil
}

func (c *command) registry(ctx context.Context) error {
	running, err := cluster.Attach(ctx, c.options)
	if err != nil {
		return fmt.Errorf("find the registry of cluster %s (make up starts the cluster): %w", c.options.Name, err)
	}
	if running.Registry() == "" {
		return fmt.Errorf("cluster %s has no registry: its nodes are simulated", running.Name())
	}
	fmt.Fprintln(c.out, running.Registry())
	return nil
}

func (c *command) node(ctx context.Context) error {
	if len(c.args) != 2 {
		return errors.New("want: node stop|start NAME")
	}
	running, err := cluster.Attach(ctx, c.options)
	if err != nil {
		return err
	}
	node, err := running.NodeNamed(c.args[1])
	if err != nil {
		return err
	}
	switch c.args[0] {
	case "stop":
		return node.Stop(ctx)
	case "start":
		return node.Start(ctx)
	}
	return fmt.Errorf("node %s: want stop or start", c.args[0])
}

func (c *command) build(ctx context.Context) error {
	scope := cluster.Everything
	switch {
	case c.only == "envtest":
		scope = cluster.Envtest
	case c.only != "":
		return fmt.Errorf("--only %s: want envtest", c.only)
	case c.options.Simulated:
		scope = cluster.ControlPlane
	}
	began := time.Now()
	binaries, err := cluster.Build(ctx, c.options, scope)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.errOut, "everything is built after %.1f s: %s\n", time.Since(began).Seconds(), filepath.Dir(binaries.Kubernetes))
	return nil
}

func (c *command) check(ctx context.Context) error { return cluster.Check(ctx) }

func (c *command) env(ctx context.Context) error {
	binaries, err := cluster.Build(ctx, c.options, cluster.Envtest)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "export KUBEBUILDER_ASSETS=%s\n", binaries.Kubernetes)
	return nil
}

func (c *command) logs(ctx context.Context) error {
	running, err := cluster.Attach(ctx, c.options)
	if err != nil {
		return err
	}
	if len(c.args) == 0 {
		names, err := running.Logs()
		for _, name := range names {
			fmt.Fprintln(c.out, name)
		}
		return err
	}
	path, err := running.LogFile(c.args[0])
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for {
		if _, err := io.Copy(c.out, file); err != nil || !c.follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followInterval):
		}
	}
}
