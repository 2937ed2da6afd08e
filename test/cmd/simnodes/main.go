package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "simnodes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o simnodes.Options
	flags := pflag.NewFlagSet("simnodes", pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "file that says where the cluster is; default: KUBECONFIG, else the user's")
	bench := flags.Int("bench", 0, "measure with so many pods, print pods a second and end")
	flags.IntVar(&o.Nodes, "nodes", simnodes.DefaultNodes, "how many nodes")
	flags.StringVar(&o.Prefix, "prefix", simnodes.DefaultPrefix, "what the nodes' names start with")
	flags.IntVar(&o.PodsPerNode, "pods-per-node", simnodes.DefaultPodsPerNode, "capacity of each node")
	flags.BoolVar(&o.Bind, "bind", false, "assign pods to the nodes, for clusters without a scheduler")
	flags.DurationVar(&o.StartDelay, "start-delay", 0, "from assignment to start of a container")
	flags.DurationVar(&o.ReadyDelay, "ready-delay", 0, "from start to ready")
	flags.DurationVar(&o.ResizeDelay, "resize-delay", 0, "from a change of resources to its completion")
	flags.DurationVar(&o.TerminationDelay, "termination-delay", 0, "from deletion to the end of a pod")
	flags.Float64Var(&o.Jitter, "jitter", 0, "fraction by which start and ready delays vary")
	flags.Int64Var(&o.Seed, "seed", 0, "changes container IDs and jitter")
	flags.IntVar(&o.Workers, "workers", simnodes.DefaultWorkers, "writes under way at once")
	images := imageFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.Images = images()
	o.Log = funcr.New(func(prefix, line string) { fmt.Fprintln(os.Stderr, prefix, line) }, funcr.Options{LogTimestamp: true})
	config, err := clusterConfig(*kubeconfig)
	if err != nil {
		return err
	}
	if *bench > 0 {
		return measure(ctx, config, *bench, o, out)
	}
	nodes, err := simnodes.Start(ctx, config, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d simulated nodes are ready\n", o.Nodes)
	nodes.Wait()
	_, err = fmt.Fprintf(out, "%+v\n", nodes.Counts())
	return err
}

// imageFlags adds a flag for each way in which an image can misbehave.
func imageFlags(flags *pflag.FlagSet) func() map[string]simnodes.Image {
	faults := []struct {
		behaviour simnodes.Image
		names     *[]string
	}{
		{simnodes.CrashLoop(), flags.StringSlice("crash", nil, "images whose containers crash")},
		{simnodes.Image{PullFails: true}, flags.StringSlice("pull-error", nil, "images that cannot be pulled")},
		{simnodes.Image{NeverReady: true}, flags.StringSlice("never-ready", nil, "images whose containers never get ready")},
		{simnodes.Image{Silent: true}, flags.StringSlice("silent", nil, "images whose pods are never reported on")},
	}
	same := flags.StringToString("same-image", nil, "IMAGE=OTHER pairs that share one image ID")
	return func() map[string]simnodes.Image {
		images := map[string]simnodes.Image{}
		for _, fault := range faults {
			for _, name := range *fault.names {
				images[name] = fault.behaviour
			}
		}
		for name, other := range *same {
			behaviour := images[name]
			behaviour.SameAs = other
			images[name] = behaviour
		}
		return images
	}
}

func clusterConfig(file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	return config, nil
}

// measure runs the measurement in a new namespace, and then removes the namespace and the nodes.
func measure(ctx context.Context, config *rest.Config, pods int, o simnodes.Options, out io.Writer) error {
	config = rest.CopyConfig(config)
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	o.Prefix = "bench-" + o.Prefix
	space, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "simnodes-bench-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	defer cleanUp(context.WithoutCancel(ctx), kube, space.Name, o)
	if err := ensureAccount(ctx, kube, space.Name); err != nil {
		return err
	}
	figures, err := simnodes.Measure(ctx, config, space.Name, pods, o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, figures)
	return err
}

// ensureAccount creates the service account that pods need if admission requires one.
func ensureAccount(ctx context.Context, kube kubernetes.Interface, namespace string) error {
	_, err := kube.CoreV1().ServiceAccounts(namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create service account: %w", err)
	}
	return nil
}

func cleanUp(ctx context.Context, kube kubernetes.Interface, namespace string, o simnodes.Options) {
	failed := func(what string, err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			fmt.Fprintf(os.Stderr, "simnodes: delete %s: %v\n", what, err)
		}
	}
	failed("namespace "+namespace, kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}))
	for i := range o.Nodes {
		name := fmt.Sprintf("%s%d", o.Prefix, i)
		failed("node "+name, kube.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}))
		failed("lease "+name, kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, name, metav1.DeleteOptions{}))
	}
}
