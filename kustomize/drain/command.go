package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// lastLook is how long the command asks for the pods that are left when its time is over.
const lastLook = 10 * time.Second

// ownPeriod leaves each pod the grace period of its own spec.
const ownPeriod = -1

// NewCommand returns flotilla drain.
func NewCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	var timeout time.Duration
	var dryRun, always bool
	d := drain{streams: streams, clock: clock.RealClock{}, again: 5 * time.Second, look: time.Second}
	command := &cobra.Command{
		Use:   "drain NODE",
		Short: "Empty a node, except for pods of DaemonSets",
		Long: `Cordon a node and evict its pods within all budgets. Pods of DaemonSets stay, both of Kubernetes and of apps.kruise.io:
kubectl drain evicts the latter, and they return at once. To use the node again, run kubectl uncordon NODE.`,
		Args: cli.Arguments(func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
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
			client, err := workload.Connect(flags)
			if err != nil {
				return err
			}
			if !always {
				return cli.MisuseErrorf("--ignore-daemonsets must be true: pods of DaemonSets would return to the node at once")
			}
			d.client, d.node = client, args[0]
			ctx := command.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			err = d.run(ctx, dryRun)
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				// The context has ended, and the question is a last one.
				left, stop := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
				defer stop()
				return cli.NoErrorf("node %s is not empty after %s. To use it again: kubectl uncordon %[1]s. These pods are left:\n  %s",
					d.node, timeout, strings.Join(d.left(left), "\n  "))
			}
			return err
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 0, "time limit, such as 5m; 0 means no limit")
	command.Flags().Int64Var(&d.grace, "grace-period", ownPeriod, "seconds that each pod gets to end; a negative value leaves its own period")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "show the effect on each pod without any change")
	// These are flags that kubectl drain needs for behavior that this command always has.
	command.Flags().BoolVar(&always, "ignore-daemonsets", true, "accepted for compatibility with kubectl drain; must be true")
	command.Flags().BoolVar(&d.options.force, "force", false, "also evict pods without a controller; they are lost")
	command.Flags().BoolVar(&d.options.deleteEmptyDirs, "delete-emptydir-data", false, "also evict pods with emptyDir volumes; their data is lost")
	return command
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

// drain empties one node.
type drain struct {
	streams genericiooptions.IOStreams
	clock   clock.Clock
	client  *workload.Client
	node    string
	options options
	// again is the time between two tries of a refused eviction, look that between two looks for a pod that ends.
	again, look time.Duration
	// grace is how many seconds the pods get to end; negative for their own periods.
	grace int64

	telling sync.Mutex
}

func (d *drain) run(ctx context.Context, dryRun bool) error {
	if _, err := d.client.Core.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("read node %s: %w", d.node, err)
	}
	// Refusals are reported before anything changes; pods may come until the node is cordoned.
	if _, err := d.leaving(ctx, dryRun); err != nil || dryRun {
		return err
	}
	_, err := d.client.Core.CoreV1().Nodes().Patch(ctx, d.node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{FieldManager: "flotilla"})
	if err != nil {
		return fmt.Errorf("cordon node %s: %w", d.node, err)
	}
	d.tell("node/%s cordoned", d.node)
	pods, err := d.leaving(ctx, true)
	if err != nil {
		return err
	}
	others, operators := operatorsLast(pods)
	if err := errors.Join(d.evictAll(ctx, others), d.evictAll(ctx, operators)); err != nil {
		return err
	}
	d.tell("node/%s drained", d.node)
	return nil
}

// evictAll evicts pods at the same time, and waits for each.
func (d *drain) evictAll(ctx context.Context, pods []*corev1.Pod) error {
	failures := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() { failures[i] = d.evict(ctx, pod) })
	}
	group.Wait()
	return errors.Join(failures...)
}

// left lists the pods that have not left yet, as far as that can be read.
func (d *drain) left(ctx context.Context) []string {
	list, err := d.client.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", d.node).String(),
	})
	if err != nil {
		return []string{"the remaining pods cannot be listed: " + err.Error()}
	}
	var names []string
	for i := range list.Items {
		if verdict, _ := judge(&list.Items[i], d.options); verdict == evicted {
			names = append(names, list.Items[i].Namespace+"/"+list.Items[i].Name)
		}
	}
	return names
}

// leaving lists the pods that are to leave. It is an error if one of the node's pods must not.
func (d *drain) leaving(ctx context.Context, tell bool) ([]*corev1.Pod, error) {
	list, err := d.client.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", d.node).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", d.node, err)
	}
	var pods []*corev1.Pod
	var wrong []string
	for i := range list.Items {
		pod := &list.Items[i]
		name := pod.Namespace + "/" + pod.Name
		switch verdict, why := judge(pod, d.options); verdict {
		case evicted:
			pods = append(pods, pod)
			if tell {
				d.tell("pod %s is to be evicted", name)
			}
		case stays:
			if tell {
				d.tell("pod %s stays (%s)", name, why)
			}
		case refused:
			wrong = append(wrong, name+": "+why)
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("node %s was not changed because of these pods:\n  %s", d.node, strings.Join(wrong, "\n  "))
	}
	return pods, nil
}

func (d *drain) tell(format string, args ...any) {
	d.telling.Lock()
	defer d.telling.Unlock()
	fmt.Fprintf(d.streams.Out, format+"\n", args...)
}
