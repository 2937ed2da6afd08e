package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/simnodes"

	"github.com/flotilla-project/flotilla/test/audit"
	"github.com/flotilla-project/flotilla/test/cluster"
)

const (
	// DefaultPods is the number of pods that design and results speak of.
	DefaultPods = 1000
	// DefaultNodes is the number of nodes that they speak of.
	DefaultNodes = 50

	clusterName = "flotilla-scale"
)

// Options say what to measure.
type Options struct {
	// Feature is whose operator is measured: "cloneset" or "statefulset".
	Feature string
	// Pods is how many pods each load has, Nodes how many simulated nodes there are.
	Pods, Nodes int
	// Foreign is how many pods of others are in the cluster before the operator starts.
	Foreign int
	// StartDelay is how long containers take to start on the simulated nodes.
	StartDelay time.Duration
	// Rounds is how often everything is measured.
	Rounds int
	// Only restricts a round to "idle", "floor", "built-in" or the Feature; empty means all.
	Only string
	// PprofAddress is where the operator serves profiles; empty means nowhere.
	PprofAddress string
	// OperatorLog is the file for the operator's log; empty discards it.
	OperatorLog string
	// Progress receives a line for each step.
	Progress io.Writer
}

// operator is the name of the operator's process and of its account.
func (o Options) operator() string { return o.Feature + "-manager" }

// bench is one run.
type bench struct {
	Options
	cluster *cluster.Cluster
	kube    kubernetes.Interface // without rate limit
	client  client.Client
	audit   audit.Log

	operator                                          *operator
	controllerManager, apiServer, scheduler, database process
}

// Run starts a cluster, the simulated nodes and the operator, measures, and ends all of it.
func Run(ctx context.Context, o Options) (rows []Row, err error) {
	if _, ok := features()[o.Feature]; !ok {
		return nil, fmt.Errorf("there is nothing to measure of %q", o.Feature)
	}
	named := cluster.Options{Name: clusterName, Simulated: true, Nodes: cluster.NoNodes, Out: o.Progress}
	if err := cluster.Remove(ctx, named); err != nil && !errors.Is(err, cluster.ErrNotRunning) {
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	c, err := cluster.Start(ctx, named)
	if err != nil {
		return nil, fmt.Errorf("start the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, c.Down(context.WithoutCancel(ctx))) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{Options: o, cluster: c, audit: audit.Log{Path: c.AuditLog()}}
	folder, err := os.MkdirTemp("", clusterName)
	if err != nil {
		return nil, fmt.Errorf("make a folder for the operator: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := b.start(ctx, folder); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.operator.stop()) }()
	for round := range o.Rounds {
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

// start makes the clients and starts what runs beside the cluster.
func (b *bench) start(ctx context.Context, folder string) error {
	config := b.cluster.RESTConfig()
	config.QPS = -1
	if err := b.connect(config); err != nil {
		return err
	}
	if err := b.addForeign(ctx); err != nil {
		return err
	}
	simulation := rest.CopyConfig(config)
	simulation.UserAgent = simnodes.UserAgent
	b.tell("starting %d simulated nodes", b.Nodes)
	if _, err := simnodes.Start(ctx, simulation, simnodes.Options{Nodes: b.Nodes, StartDelay: b.StartDelay}); err != nil {
		return fmt.Errorf("simulate nodes: %w", err)
	}
	b.tell("starting the operator")
	var err error
	if b.operator, err = startOperator(ctx, b.cluster, b.kube, folder, b.Options); err != nil {
		return err
	}
	return errors.Join(b.findProcesses(), err)
}

func (b *bench) connect(config *rest.Config) error {
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
	if b.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

// findProcesses finds the control plane by its folder, which all its arguments name.
func (b *bench) findProcesses() error {
	folder := filepath.Dir(b.cluster.Kubeconfig())
	var errs []error
	for name, p := range map[string]*process{
		"kube-controller-manager": &b.controllerManager, "kube-apiserver": &b.apiServer,
		"kube-scheduler": &b.scheduler, "etcd": &b.database,
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
	for _, part := range []struct {
		name string
		run  func(context.Context) ([]Row, error)
	}{{"idle", b.idle}, {"floor", b.floor}, {"built-in", b.beside}, {b.Feature, b.own}} {
		if b.Only != "" && b.Only != part.name {
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

// namespace makes a namespace that takes pods.
func (b *bench) namespace(ctx context.Context) (string, error) {
	space, err := b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "scale-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return space.Name, await(ctx, "the namespace's account", func() (bool, error) {
		_, err := b.kube.CoreV1().ServiceAccounts(space.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
}

func (b *bench) tell(format string, a ...any) {
	fmt.Fprintf(b.Progress, format+"\n", a...)
}
