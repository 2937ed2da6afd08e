package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// spread sends two pods of a Deployment to zone a and the others to zone b; deployment is that Deployment, of four pods.
var (
	//go:embed spread.yaml
	spread string
	//go:embed deployment.yaml
	deployment string
)

// zoneLabel is the label of nodes, and zonePatch the one of pods, whose value is a zone.
const (
	zoneLabel = "example.io/zone"
	zonePatch = "zone"
)

// showSpread scales a Deployment over two zones, out, in, and out again while one zone has no node.
func showSpread(ctx context.Context, d *demo) error {
	nodes := d.nodes
	if len(nodes) < 2 {
		return errors.New("two zones need two nodes, or more")
	}
	d.title("Two zones: labels of nodes")
	z := zones{ink: d.ink, of: map[string]string{}}
	labels := [][]string{{"label", "nodes", nodes[0], zoneLabel + "=a", "--overwrite"}, {"label", "nodes"}}
	z.of[nodes[0]] = "a"
	for _, node := range nodes[1:] {
		z.of[node] = "b"
		labels[1] = append(labels[1], node)
	}
	labels[1] = append(labels[1], zoneLabel+"=b", "--overwrite")
	for _, args := range labels {
		if err := d.kubectl(ctx, "", args...); err != nil {
			return err
		}
	}
	if err := d.scaleOutAndIn(ctx, z); err != nil {
		return err
	}
	d.title("The node of zone a takes no more pods")
	if err := d.kubectl(ctx, "", "cordon", nodes[0]); err != nil {
		return err
	}
	started := time.Now()
	err := errors.Join(d.fallBack(ctx, z), d.uncordon(ctx, nodes[0]))
	if err != nil {
		return err
	}
	fmt.Printf("\n%s two pods filled zone a, all others went to zone b, and those of zone b were the first to go. A pod that\n"+
		"zone a had no node for was replaced by one in zone b, within %.1f s. The Deployment knows nothing of all that. Zone a gets\n"+
		"pods again five minutes after the last one that it had no node for.\n", d.ink.green("What you just saw:"), time.Since(started).Seconds())
	d.tryNext(
		"kubectl -n demo get pods -L zone -o wide                 # each pod's subset, by the label that it was given",
		`kubectl -n demo patch ws web --type=json -p '[{"op":"replace","path":"/spec/subsets/0/maxReplicas","value":"50%"}]'`,
		"kubectl -n demo scale deployment web --replicas=8        # after five minutes: half of the pods in zone a",
		"kubectl -n demo set image deployment web main="+d.updatedImage(),
	)
	return nil
}

// scaleOutAndIn creates the Deployment and changes its replicas.
func (d *demo) scaleOutAndIn(ctx context.Context, z zones) error {
	d.title("A WorkloadSpread: two pods in zone a, all others in zone b")
	if err := d.apply(ctx, spread); err != nil {
		return err
	}
	if err := d.quietly(ctx, "-n", namespace, "wait", "ws/web", "--for=jsonpath={.status.observedGeneration}=1", "--timeout=60s"); err != nil {
		return err
	}
	d.title("A Deployment of four pods")
	err := d.follow(ctx, z, map[string]int{"a": 2, "b": 2}, func() error {
		return d.sample(ctx, deployment)
	})
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", namespace, "get", "pods", "-o",
		`custom-columns=POD:.metadata.name,ZONE:.metadata.labels.zone,NODE:.spec.nodeName,DELETION-COST:.metadata.annotations.controller\.kubernetes\.io/pod-deletion-cost`); err != nil {
		return err
	}
	d.title("More pods")
	if err := d.scale(ctx, z, 6, map[string]int{"a": 2, "b": 4}); err != nil {
		return err
	}
	d.title("Fewer pods: the last subset first")
	if err := d.scale(ctx, z, 3, map[string]int{"a": 2, "b": 1}); err != nil {
		return err
	}
	return d.scale(ctx, z, 1, map[string]int{"a": 1})
}

// scale changes the replicas, and shows the pods until they are those that are wanted.
func (d *demo) scale(ctx context.Context, z zones, replicas int, want map[string]int) error {
	return d.follow(ctx, z, want, func() error {
		return d.kubectl(ctx, "", "-n", namespace, "scale", "deployment", "web", fmt.Sprintf("--replicas=%d", replicas))
	})
}

// follow shows the pods from a change until as many as are wanted are ready in each zone, and no others are there.
func (d *demo) follow(ctx context.Context, z zones, want map[string]int, change func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	view, err := d.watch(ctx)
	if err != nil {
		return err
	}
	defer view.watcher.Stop()
	if err := change(); err != nil {
		return err
	}
	return view.show(ctx, func(pods []*corev1.Pod) moment { return z.tell(pods, want) })
}

// fallBack asks for two more pods while zone a takes none, and shows what the status says of that.
func (d *demo) fallBack(ctx context.Context, z zones) error {
	if err := d.scale(ctx, z, 3, map[string]int{"a": 1, "b": 2}); err != nil {
		return err
	}
	closed := `--for=jsonpath={.status.subsetStatuses[?(@.name=="a")].conditions[?(@.type=="Schedulable")].status}=False`
	if err := d.quietly(ctx, "-n", namespace, "wait", "ws/web", closed, "--timeout=60s"); err != nil {
		return err
	}
	return d.kubectl(ctx, "", "-n", namespace, "get", "ws", "web", "-o",
		`jsonpath={range .status.subsetStatuses[*]}{.name}: {.replicas} pods, room {.missingReplicas}, {.conditions[0].reason}: {.conditions[0].message}{"\n"}{end}`)
}

// zones shows pods by their zone.
type zones struct {
	ink ink
	of  map[string]string // node → zone
}

// tell shows how many pods of each zone are ready, and what others wait for. It is done when as many as are wanted are
// ready in each zone, with their deletion costs, and fails when a pod is on a node of another zone than its subset's.
func (z zones) tell(pods []*corev1.Pod, want map[string]int) moment {
	ready, waiting := map[string]int{}, map[string]int{}
	now := moment{done: true}
	var why []string
	for _, o := range pods {
		s := podstate.Of(o, time.Now(), 0)
		zone := o.Labels[zonePatch]
		node := o.Spec.NodeName
		switch {
		case s.Terminating:
			why = append(why, fmt.Sprintf("%s leaves %s", o.Name, zone))
			continue
		case node != "" && z.of[node] != zone:
			now.err = fmt.Errorf("pod %s of zone %q is on node %s in zone %q", o.Name, zone, node, z.of[node])
		case s.Ready:
			ready[zone]++
			now.done = now.done && o.Annotations[contract.PodDeletionCostAnnotation] != ""
			continue
		case isUnschedulable(o):
			why = append(why, fmt.Sprintf("no node for %s in %s", o.Name, zone))
		}
		waiting[zone]++
	}
	var bars []string
	for _, zone := range []string{"a", "b"} {
		bars = append(bars, fmt.Sprintf("zone %s %s", zone, z.ink.bar(ready[zone], waiting[zone])))
		now.done = now.done && ready[zone] == want[zone]
	}
	now.done = now.done && len(waiting) == 0
	now.line = strings.TrimSpace(strings.Join(append(bars, z.ink.dim(strings.Join(why, ", "))), "   "))
	return now
}

// isUnschedulable reports whether the scheduler has found no node for the pod.
func isUnschedulable(o *corev1.Pod) bool {
	c := podstate.Condition(o, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
}
