package endurance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/kustomize/catalog"

	"github.com/flotilla-project/flotilla/test/agents"
	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/managers"
)

const (
	clusterName = "flotilla-endurance"
	// groupLabel has the group of a node, of which there are so many.
	groupLabel = "flotilla.test/group"
	groups     = 3
)

// world is a simulated cluster with the managers of all features.
type world struct {
	client   client.WithWatch
	managers map[string]*managers.Manager
	ends     []func() error
	// logs is the folder with the logs of the managers, which stays if failed is true.
	logs   string
	failed bool
}

// begin starts the cluster, its nodes and agents, and the managers.
func begin(ctx context.Context, o Options) (w *world, err error) {
	w = &world{managers: map[string]*managers.Manager{}}
	defer func() {
		if err != nil {
			err = w.fail(err)
		}
	}()
	settings := cluster.Options{Name: clusterName, Simulated: true, Nodes: cluster.NoNodes, Out: o.Out}
	if err := cluster.Remove(ctx, settings); err != nil && !errors.Is(err, cluster.ErrNotRunning) {
		return w, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	c, err := cluster.Start(ctx, settings)
	if err != nil {
		return w, fmt.Errorf("start the cluster: %w", err)
	}
	w.ends = append(w.ends, func() error { return c.Down(context.WithoutCancel(ctx)) })
	if err := w.connect(c); err != nil {
		return w, err
	}
	if err := w.startNodes(ctx, c.RESTConfig(), o.Nodes); err != nil {
		return w, err
	}
	return w, w.startManagers(ctx, c)
}

func (w *world) connect(c *cluster.Cluster) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), daemon.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	config := c.RESTConfig()
	config.QPS = -1
	var err error
	if w.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

func (w *world) startNodes(ctx context.Context, config *rest.Config, nodes int) error {
	config.QPS = -1
	config.UserAgent = simnodes.UserAgent
	simulating, stop := context.WithCancel(ctx)
	w.ends = append(w.ends, func() error { stop(); return nil })
	_, err := simnodes.Start(simulating, config, simnodes.Options{
		Nodes:  nodes,
		Images: map[string]simnodes.Image{"app:done": {Exits: true}},
		Labels: labels,
	})
	if err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	return nil
}

// labels gives each node a group. Those of the first group are virtual nodes, where the image of a sidecar is replaced: no agent
// is played that stops containers.
func labels(node int) map[string]string {
	group := node % groups
	if group == 0 {
		return map[string]string{groupLabel: strconv.Itoa(group), "type": "virtual-kubelet"}
	}
	return map[string]string{groupLabel: strconv.Itoa(group)}
}

// startManagers installs all features and starts their managers, and the agents once their kinds are there.
func (w *world) startManagers(ctx context.Context, c *cluster.Cluster) error {
	features, err := catalog.Features()
	if err != nil {
		return err
	}
	if w.logs, err = os.MkdirTemp("", clusterName); err != nil {
		return fmt.Errorf("make a folder for the managers: %w", err)
	}
	w.ends = append(w.ends, func() error {
		if w.failed {
			return nil
		}
		return os.RemoveAll(w.logs)
	})
	for _, f := range features {
		options := managers.Options{
			Cluster: c,
			Client:  w.client,
			Feature: f.Name,
			Folder:  w.logs,
		}
		if f.Name == "jobs" {
			options.Components = []string{"sidecarterminator"}
			options.Arguments = []string{"--feature-gates=SidecarTerminator=true"}
		}
		m, err := managers.Install(ctx, options)
		if err != nil {
			return err
		}
		w.managers[f.Name] = m
		w.ends = append(w.ends, m.Stop)
	}
	var starting errgroup.Group
	for _, m := range w.managers {
		starting.Go(func() error { return m.Start(ctx) })
	}
	if err := starting.Wait(); err != nil {
		return err
	}
	for _, played := range []struct {
		list   client.ObjectList
		answer agents.Answer
	}{{&daemon.NodeImageList{}, agents.Pull}, {&daemon.ContainerRecreateRequestList{}, agents.Recreate}} {
		stop, err := agents.Play(ctx, w.client, played.list, played.answer)
		if err != nil {
			return err
		}
		w.ends = append(w.ends, func() error { stop(); return nil })
	}
	return nil
}

// fail ends all that was started but keeps the logs, and returns the error with their folder.
func (w *world) fail(err error) error {
	w.failed = true
	if w.logs != "" {
		err = fmt.Errorf("%w (the logs of the managers are in %s)", err, w.logs)
	}
	return errors.Join(err, w.end())
}

// end ends all that was started, in the reverse order.
func (w *world) end() error {
	var errs []error
	for len(w.ends) > 0 {
		last := len(w.ends) - 1
		errs = append(errs, w.ends[last]())
		w.ends = w.ends[:last]
	}
	return errors.Join(errs...)
}
