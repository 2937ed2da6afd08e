package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// How --dry-run may be given.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// drain empties one node.
type drain struct {
	streams genericiooptions.IOStreams
	report  *cli.Report
	clock   clock.Clock
	client  *workload.Client
	node    string
	// pods selects the pods that are looked at; nil for all.
	pods    labels.Selector
	options options
	dryRun  string
	// disableEviction deletes pods instead of evicting them.
	disableEviction bool
	// chunk is how many pods a request lists.
	chunk int64
	// again is the time between two tries of a refused eviction, look that between two looks for a pod that ends.
	again, look time.Duration
	// grace is how many seconds the pods get to end; negative for their own periods.
	grace int64
	// reportConditions writes the conditions DrainInProgress and Drained of the node.
	reportConditions bool

	telling sync.Mutex
}

func (d *drain) run(ctx context.Context) error {
	node, err := d.client.Core.CoreV1().Nodes().Get(ctx, d.node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", d.node, err)
	}
	// Refusals are reported before anything changes; pods may come until the node is cordoned.
	pods, err := d.leaving(ctx, d.dryRun != dryRunNone)
	if err != nil {
		return err
	}
	if err := d.cordon(ctx, node); err != nil || d.dryRun == dryRunClient {
		return err
	}
	return d.observed(ctx, node, func(ctx context.Context) error {
		if d.dryRun == dryRunServer {
			return d.ask(ctx, pods)
		}
		return d.empty(ctx)
	})
}

// empty makes the pods leave that are on the cordoned node.
func (d *drain) empty(ctx context.Context) error {
	pods, err := d.leaving(ctx, true)
	if err != nil {
		return err
	}
	others, operators := operatorsLast(pods)
	if err := errors.Join(d.removeAll(ctx, others), d.removeAll(ctx, operators)); err != nil {
		return err
	}
	d.tell("node/%s drained", d.node)
	return nil
}

// cordon keeps new pods from the node.
func (d *drain) cordon(ctx context.Context, node *corev1.Node) error {
	done := cli.ReportedObject{
		APIVersion: "v1",
		Kind:       "Node",
		Name:       d.node,
		Action:     cli.Configured,
		Message:    "cordoned",
	}
	if node.Spec.Unschedulable {
		done.Action, done.Message = cli.Unchanged, "was cordoned before"
	}
	if d.dryRun != dryRunClient {
		_, err := d.client.Core.CoreV1().Nodes().Patch(ctx, d.node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`),
			metav1.PatchOptions{FieldManager: "flotilla", DryRun: d.asked()})
		if err != nil {
			done.Action = cli.Refused
			done.Message = err.Error()
			d.report.Add(done)
			return fmt.Errorf("cordon node %s: %w", d.node, err)
		}
	}
	d.report.Add(done)
	if d.dryRun == dryRunNone {
		d.tell("node/%s cordoned", d.node)
	}
	return nil
}

// asked makes requests of --dry-run=server write nothing.
func (d *drain) asked() []string {
	if d.dryRun == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// ask asks the API server for each pod whether it may leave now. That budgets refuse some is no failure: the drain waits for
// these.
func (d *drain) ask(ctx context.Context, pods []*corev1.Pod) error {
	var failures []error
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		err := d.request(ctx, pod)
		switch {
		case err == nil, overtaken(err):
		case ofAMoment(err):
			d.tell("pod %s/%s would wait: %s", pod.Namespace, pod.Name, err)
			d.did(pod, cli.Refused, err.Error())
		default:
			d.did(pod, cli.Refused, err.Error())
			failures = append(failures, fmt.Errorf("%s pod %s/%s: %w", d.verb(), pod.Namespace, pod.Name, err))
		}
	}
	return errors.Join(failures...)
}

// removeAll evicts or deletes pods at the same time, and waits for each.
func (d *drain) removeAll(ctx context.Context, pods []*corev1.Pod) error {
	failures := make([]error, len(pods))
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() {
			if failures[i] = d.remove(ctx, pod); failures[i] != nil && !errors.Is(failures[i], ctx.Err()) {
				d.did(pod, cli.Refused, failures[i].Error())
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// list lists the pods of the node that the user has selected, in pages.
func (d *drain) list(ctx context.Context) ([]corev1.Pod, error) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", d.node).String(), Limit: d.chunk}
	if d.pods != nil {
		options.LabelSelector = d.pods.String()
	}
	var all []corev1.Pod
	for {
		list, err := d.client.Core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list the pods of node %s: %w", d.node, err)
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// left lists the pods that have not left yet, as far as that can be read.
func (d *drain) left(ctx context.Context) []string {
	pods, err := d.list(ctx)
	if err != nil {
		return []string{"the remaining pods cannot be listed: " + err.Error()}
	}
	var names []string
	for i := range pods {
		if verdict, _ := judge(&pods[i], d.options, d.clock.Now()); verdict == evicted {
			names = append(names, pods[i].Namespace+"/"+pods[i].Name)
		}
	}
	return names
}

// leaving lists the pods that are to leave. It is an error if one of the node's pods must not.
func (d *drain) leaving(ctx context.Context, tell bool) ([]*corev1.Pod, error) {
	all, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	var wrong []string
	for i := range all {
		pod := &all[i]
		name := pod.Namespace + "/" + pod.Name
		switch verdict, why := judge(pod, d.options, d.clock.Now()); verdict {
		case evicted:
			pods = append(pods, pod)
			if tell {
				d.tell("pod %s is to be %s", name, d.participle())
			}
			if d.dryRun != dryRunNone {
				d.did(pod, cli.Removed, "")
			}
		case stays:
			if tell {
				d.tell("pod %s stays (%s)", name, why)
				d.did(pod, cli.Unchanged, why)
			}
		case refused:
			d.did(pod, cli.Refused, why)
			wrong = append(wrong, name+": "+why)
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("node %s was not changed because of these pods:\n  %s", d.node, strings.Join(wrong, "\n  "))
	}
	return pods, nil
}

// did reports what became of a pod.
func (d *drain) did(pod *corev1.Pod, action cli.Action, why string) {
	d.report.Add(cli.ReportedObject{
		APIVersion: "v1",
		Kind:       "Pod",
		Namespace:  pod.Namespace,
		Name:       pod.Name,
		Action:     action,
		Message:    why,
	})
}
