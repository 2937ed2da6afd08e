package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// afterwards is how long the command still reads and writes when its time is over.
const afterwards = 10 * time.Second

// ownPeriod leaves each pod the grace period of its own spec.
const ownPeriod = -1

// pageSize is how many pods one request lists.
const pageSize = 500

// flagsOf are the flags of the command that are not the drain's own.
type flagsOf struct {
	timeout              time.Duration
	podSelector, several string
	output               cli.Output
	daemonSetsStay       bool
	skipAfter            int
}

// NewCommand returns flotilla drain.
func NewCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	var given flagsOf
	d := &drain{
		streams: streams,
		clock:   clock.RealClock{},
		again:   5 * time.Second,
		look:    time.Second,
	}
	command := &cobra.Command{
		Use:   "drain NODE",
		Short: "Empty a node, except for pods of DaemonSets",
		Long: `Cordon a node and evict its pods within all budgets. Pods of DaemonSets stay, both of Kubernetes and of apps.kruise.io:
kubectl drain evicts the latter, and they return at once. To use the node again, run kubectl uncordon NODE.

The flags have the names and meanings of kubectl drain.

--disable-eviction deletes pods instead of evicting them. PodDisruptionBudgets protect evictions only, so that no PodDisruptionBudget
protects these pods. PodUnavailableBudgets protect deletions, too: the command repeats a deletion that one of them rejects.
Their protection of deletions needs feature gate PodUnavailableBudgetDeleteGate of operator budget, which is on by default.

--report-node-conditions writes the conditions DrainInProgress and Drained of Kubernetes 1.37 (alpha). kubectl uncordon leaves them.`,
		Example: `  flotilla drain node-1 --dry-run
  flotilla drain node-1 --timeout=10m --delete-emptydir-data
  flotilla drain node-1 --pod-selector='app=web'
  flotilla drain node-1 --report-node-conditions`,
		Args: cli.Arguments(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && given.several == "" {
				return errors.New("name one node, such as node-1")
			}
			return nil
		}),
		ValidArgsFunction: func(command *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nodeNames(command.Context(), flags, typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, args []string) error {
			if err := given.check(d); err != nil {
				return err
			}
			d.node = args[0]
			report := &cli.Report{Command: "drain", DryRun: d.dryRun != dryRunNone}
			return cli.Reporting(command.Context(), flags, streams, given.output, report, func(
				flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams, report *cli.Report,
			) error {
				d.streams, d.report = streams, report
				client, err := workload.Connect(flags)
				if err != nil {
					return err
				}
				d.client = client
				return d.within(command.Context(), given.timeout)
			})
		},
	}
	given.addTo(command, d)
	return command
}

func (g *flagsOf) addTo(command *cobra.Command, d *drain) {
	set := command.Flags()
	set.DurationVar(&g.timeout, "timeout", 0, "time limit, such as 5m; 0 means no limit")
	set.Int64Var(&d.grace, "grace-period", ownPeriod, "seconds that each pod gets to end; a negative value leaves its own period")
	set.StringVar(&d.dryRun, "dry-run", dryRunNone,
		`none, client or server: "client" shows the effect on each pod, "server" also asks the API server whether each pod may leave now; both write nothing`)
	set.Lookup("dry-run").NoOptDefVal = dryRunClient
	// These are flags that kubectl drain needs for behavior that this command always has.
	set.BoolVar(&g.daemonSetsStay, "ignore-daemonsets", true, "accepted for compatibility with kubectl drain; must be true")
	set.BoolVar(&d.options.force, "force", false, "also evict pods without a controller; they are lost")
	set.BoolVar(&d.options.deleteEmptyDirs, "delete-emptydir-data", false, "also evict pods with emptyDir volumes; their data is lost")
	set.BoolVar(&d.disableEviction, "disable-eviction", false,
		"delete pods instead of evicting them; PodDisruptionBudgets do not protect them then, PodUnavailableBudgets do")
	set.StringVar(&g.podSelector, "pod-selector", "", "label selector; other pods of the node stay")
	set.IntVar(&g.skipAfter, "skip-wait-for-delete-timeout", 0,
		"do not wait for pods whose deletion is older than this many seconds, as on a node that is down; 0 means wait for all")
	set.Int64Var(&d.chunk, "chunk-size", pageSize, "how many pods one request lists; 0 means all")
	set.BoolVar(&d.reportConditions, "report-node-conditions", false,
		"write conditions DrainInProgress and Drained to the status of the node; needs the right to patch nodes/status")
	set.StringVarP(&g.several, "selector", "l", "", "rejected: the command drains one node, so that the capacity of the others is known")
	g.output.AddTo(set)
}

// check refuses flags that make no sense, and gives the drain what they say.
func (g *flagsOf) check(d *drain) error {
	switch {
	case g.several != "":
		return cli.MisuseErrorf("--selector is not supported: flotilla drain empties one node. To empty several, one after the other: "+
			"for node in $(kubectl get nodes -o name -l '%s'); do flotilla drain ${node#node/}; done", g.several)
	case !g.daemonSetsStay:
		return cli.MisuseErrorf("--ignore-daemonsets must be true: pods of DaemonSets would return to the node at once")
	case !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, d.dryRun):
		return cli.MisuseErrorf("invalid --dry-run %q: use none, client or server", d.dryRun)
	case g.skipAfter < 0:
		return cli.MisuseErrorf("--skip-wait-for-delete-timeout %d is negative: use 0 to wait for all pods", g.skipAfter)
	case d.chunk < 0:
		return cli.MisuseErrorf("--chunk-size %d is negative: use 0 to list all pods in one request", d.chunk)
	}
	selector, err := labels.Parse(g.podSelector)
	if err != nil {
		return cli.MisuseErrorf("--pod-selector: %s", err)
	}
	d.pods = selector
	d.options.skipAfter = time.Duration(g.skipAfter) * time.Second
	return nil
}

// within runs the drain for a time, 0 without a limit, and names the pods that are left at its end.
func (d *drain) within(ctx context.Context, limit time.Duration) error {
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err := d.run(limited)
	over := errors.Is(limited.Err(), context.DeadlineExceeded)
	if err == nil || !over && (d.report == nil || d.dryRun != dryRunNone) {
		return err
	}
	// The context has ended, and the question is a last one.
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer stop()
	left := d.left(last)
	d.report.Leave(left...)
	if !over {
		return err
	}
	return cli.NoErrorf("node %s is not empty after %s. To use it again: kubectl uncordon %[1]s. These pods are left:\n  %[3]s",
		d.node, limit, strings.Join(left, "\n  "))
}

func nodeNames(ctx context.Context, flags genericclioptions.RESTClientGetter, typed string) []string {
	client, err := workload.Connect(flags)
	if err != nil {
		return nil
	}
	list, err := client.Core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, typed) {
			names = append(names, name)
		}
	}
	return names
}

func (d *drain) tell(format string, args ...any) {
	d.telling.Lock()
	defer d.telling.Unlock()
	fmt.Fprintf(d.streams.Out, format+"\n", args...)
}
