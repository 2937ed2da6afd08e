package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"

	"github.com/flotilla-project/flotilla/test/audit"
	"github.com/flotilla-project/flotilla/test/cluster"
)

const (
	// DefaultPods is the number of pods of the published results.
	DefaultPods = 1000
	// DefaultNodes is the number of nodes of the published results.
	DefaultNodes = 50

	clusterName = "flotilla-scale"

	// leasePeriod is the time between two heartbeats of a node. The heartbeats of thousands of kubelets, one every 10 s, would
	// take more of an API server on two cores than what is measured.
	leasePeriod = 2 * time.Minute
	// nodeGrace is for how long a node may be silent.
	nodeGrace = 10 * time.Minute
)

// Options describe what to measure.
type Options struct {
	// Feature is the feature whose operator is measured, one of Features.
	Feature string
	// Pods is the number of pods of each load, or of each set of Restart. Nodes is the number of simulated nodes; where
	// every node runs one pod, there are as many as pods.
	Pods, Nodes int
	// Foreign is the number of pods of others that exist before the operator starts. They are created once and kept in
	// the cache.
	Foreign int
	// Sets is the number of sets of Restart.
	Sets int
	// StartDelay is the time that containers need to start on the simulated nodes.
	StartDelay time.Duration
	// Rounds is the number of times that everything is measured.
	Rounds int
	// Only restricts a round to some of "idle", "floor", "ready", "dead", "built-in", the Feature and "many" (of budget and
	// spread), or, of jobs, "broadcast", "pull" and "cron"; empty means all.
	Only []string
	// PprofAddress is the address at which the operator serves profiles; empty disables them.
	PprofAddress string
	// OperatorLog is the file for the operator's log; empty discards it.
	OperatorLog string
	// Progress receives a line for each step.
	Progress io.Writer

	cluster string // its name; default: clusterName
	gate    bool   // leave out what has no bounds
	images  int    // NodeImages; default: leastImages, or as many as Pods where these are more
}

// operator returns the name of the operator's process and of its account.
func (o Options) operator() string { return o.Feature + "-manager" }

// bench is one run.
type bench struct {
	Options
	cluster *cluster.Cluster
	folder  string // for temporary files of the run
	config  *rest.Config
	kube    kubernetes.Interface // without rate limit
	client  client.WithWatch
	audit   audit.Log

	stopNodes                                         context.CancelFunc
	operator                                          *operator
	controllerManager, apiServer, scheduler, database process
}

// Run starts a cluster, the simulated nodes and the operator, measures, and stops them.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	f, ok := features()[o.Feature]
	if !ok {
		return nil, fmt.Errorf("there is nothing to measure of %q", o.Feature)
	}
	if f.perNode {
		o.Nodes = o.Pods
	}
	database, err := o.foreign(ctx)
	if err != nil {
		return nil, err
	}
	b, end, err := o.open(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	for round := range o.Rounds {
		if err := b.unmarked(ctx); err != nil {
			return rows, err
		}
		measured, err := b.round(ctx)
		for i := range measured {
			measured[i].Round = round + 1
		}
		rows = append(rows, measured...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// start starts the simulated nodes, and the operator from its overlay, and waits until it has settled.
func (b *bench) start(ctx context.Context) error {
	if err := b.startNodes(ctx); err != nil {
		return err
	}
	if err := b.findProcesses(); err != nil {
		return err
	}
	if err := b.startOperator(ctx); err != nil {
		return err
	}
	if settled := features()[b.Feature].settled; settled != nil {
		return settled(b, ctx)
	}
	return nil
}

func (b *bench) startNodes(ctx context.Context) error {
	simulation := rest.CopyConfig(b.config)
	simulation.UserAgent = simnodes.UserAgent
	b.tell("starting %d simulated nodes", b.Nodes)
	simulating, stop := context.WithCancel(ctx)
	b.stopNodes = stop
	if _, err := simnodes.Start(simulating, simulation, simnodes.Options{
		Nodes: b.Nodes, StartDelay: b.StartDelay, LeasePeriod: leasePeriod, Labels: zoneOf,
		Images: map[string]simnodes.Image{imageEnds: {Exits: true}},
	}); err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	return until(ctx, "nodes without taints", func() (bool, error) { return b.untainted(ctx) })
}

func (b *bench) startOperator(ctx context.Context) error {
	b.tell("starting the operator of %s", b.Feature)
	var err error
	if b.operator, err = newOperator(ctx, b.cluster, b.client, b.folder, b.Options); err != nil {
		return err
	}
	return b.operator.start(ctx)
}

// untainted reports whether the control plane has taken the taints of new nodes off all of them.
func (b *bench) untainted(ctx context.Context) (bool, error) {
	nodes, err := b.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return false, fmt.Errorf("list nodes: %w", err)
	}
	tainted := func(n corev1.Node) bool { return len(n.Spec.Taints) > 0 }
	return len(nodes.Items) >= b.Nodes && !slices.ContainsFunc(nodes.Items, tainted), nil
}

func (b *bench) connect() error {
	config := b.cluster.RESTConfig()
	config.QPS = -1
	b.config = config
	b.audit = audit.Log{Path: b.cluster.AuditLog()}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), features()[b.Feature].addToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	fast := rest.CopyConfig(config)
	fast.ContentType = runtime.ContentTypeProtobuf
	var err error
	if b.kube, err = kubernetes.NewForConfig(fast); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if b.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

// findProcesses finds the processes of the control plane by its folder, which is in their arguments.
func (b *bench) findProcesses() error {
	folder := filepath.Dir(b.cluster.Kubeconfig())
	var errs []error
	for name, p := range map[string]*process{
		"kube-controller-manager": &b.controllerManager,
		"kube-apiserver":          &b.apiServer,
		"kube-scheduler":          &b.scheduler,
		"etcd":                    &b.database,
	} {
		found, err := find(name, folder)
		*p = found
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (b *bench) processes() []process {
	return []process{b.operator.process, b.controllerManager, b.apiServer, b.scheduler, b.database}
}

// round runs all loads once.
func (b *bench) round(ctx context.Context) ([]Row, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the watches
	defer cancel()
	var rows []Row
	before := []part{
		{name: "idle", run: b.idle}, {name: "floor", run: b.floor, apart: true}, {name: "ready", run: b.toReady, apart: true},
		{name: "dead", run: b.dead, apart: true},
	}
	for _, part := range append(before, b.parts()...) {
		if b.gate && part.apart || len(b.Only) > 0 && !slices.Contains(b.Only, part.name) {
			continue
		}
		measured, err := part.run(ctx)
		rows = append(rows, measured...)
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// unmarked waits until the operator has taken its mark from all namespaces, some time after their last objects are gone. That
// write is of no later load, and the operator is not idle before it.
func (b *bench) unmarked(ctx context.Context) error {
	mark := features()[b.Feature].mark
	if mark == "" {
		return nil
	}
	return awaitEvery(ctx, slow, "the end of label "+mark, func() (bool, error) {
		marked, err := b.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: mark})
		return err == nil && len(marked.Items) == 0, err
	})
}

// namespace makes a namespace in which pods can be created.
func (b *bench) namespace(ctx context.Context) (string, error) {
	space, err := b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scale-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return space.Name, until(ctx, "the namespace's account", func() (bool, error) {
		_, err := b.kube.CoreV1().ServiceAccounts(space.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

func (b *bench) tell(format string, a ...any) {
	fmt.Fprintf(b.Progress, format+"\n", a...)
}
