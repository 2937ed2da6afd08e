package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// budget is a CloneSet that would update all its pods at once, and a budget that lets none of them go.
//
//go:embed budget.yaml
var budget string

const (
	wanted  = 4 // pods of the CloneSet
	refusal = "PodUnavailableBudget " + namespace + "/web refuses"
)

// showBudget drains a node and changes the image of all pods, at once. The budget refuses both, then lets one pod be
// unavailable at a time.
func showBudget(ctx context.Context, d *demo) error {
	if len(d.nodes) < 2 {
		return errors.New("the pods of a drained node need another node: start two, or more")
	}
	if err := d.need(ctx, "cloneset", "The operator of cloneset, whose rollout is held up"); err != nil {
		return err
	}
	d.title("A CloneSet of four pods, and a budget that lets none of them go")
	old, err := d.begin(ctx, "cloneset", budget)
	if err != nil {
		return err
	}
	if err := d.awaitGuard(ctx); err != nil {
		return err
	}
	c := &course{
		ink:   d.ink,
		node:  crowded(old),
		image: d.updatedImage(),
		least: len(old),
	}
	c.floor.Store(wanted)
	started := time.Now()
	err = errors.Join(d.drainAndUpdate(ctx, c), d.uncordon(ctx, c.node))
	if err != nil {
		return err
	}
	took := time.Since(started)
	now, err := d.settled(ctx)
	if err != nil {
		return err
	}
	d.title("Before and after")
	fmt.Print(d.table(old, now))
	fmt.Printf("\n%s in %.1f s all pods got the new image, and node %s was emptied. Never were fewer than %d of %d pods\n"+
		"available, although the rollout may take all of them at once and a drain knows nothing of rollouts. The rollout went on\n"+
		"by itself when it could, and kubectl tried again. Refused evictions: %d.\n",
		d.ink.green("What you just saw:"), took.Seconds(), c.node, c.least, wanted, c.refused.Load())
	d.tryNext(
		"kubectl -n demo get pub web                              # ALLOWED CURRENT DESIRED TOTAL",
		"kubectl -n demo delete pods --all                        # one goes, and the others are refused",
		`kubectl -n demo patch pub web --type=merge -p '{"spec":{"maxUnavailable":"50%"}}'`,
		"                                                         # two at a time",
	)
	return nil
}

// uncordon lets a node have pods again, also when the demo is being ended.
func (d *demo) uncordon(ctx context.Context, node string) error {
	return d.kubectl(context.WithoutCancel(ctx), "", "uncordon", node)
}

// awaitGuard waits until the budget has counted the pods and the API server asks about each of them.
func (d *demo) awaitGuard(ctx context.Context) error {
	for _, wait := range [][]string{
		{"pub/web", fmt.Sprintf("--for=jsonpath={.status.desiredAvailable}=%d", wanted)},
		{"pub/web", fmt.Sprintf("--for=jsonpath={.status.currentAvailable}=%d", wanted)},
		{"pods", "-l=app=web", `--for=jsonpath={.metadata.annotations.pub\.kruise\.io/related-pub}=web`},
		{"namespace/" + namespace, `--for=jsonpath={.metadata.labels.policy\.kruise\.io/pod-unavailable-budget}=true`},
	} {
		if err := d.quietly(ctx, append([]string{"-n", namespace, "wait", "--timeout=60s"}, wait...)...); err != nil {
			return err
		}
	}
	return d.kubectl(ctx, "", "-n", namespace, "get", "pub", "web")
}

// drainAndUpdate shows a rollout and a drain at once: both refused, then both to their end.
func (d *demo) drainAndUpdate(ctx context.Context, c *course) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	view, err := d.watch(ctx)
	if err != nil {
		return err
	}
	defer view.watcher.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return view.show(ctx, c.tell) })
	group.Go(func() error { return d.actAndFree(ctx, group, c) })
	return group.Wait()
}

// actAndFree begins the rollout and the drain, and lets a pod go when both are refused.
func (d *demo) actAndFree(ctx context.Context, group *errgroup.Group, c *course) error {
	d.title("A new image and a drain at once, both refused")
	if err := d.kubectl(ctx, "", "-n", namespace, "patch", d.kind, "web", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+d.updatedImage()+`"}]`); err != nil {
		return err
	}
	said, err := d.awaitWords(ctx)
	if err != nil {
		return err
	}
	fmt.Println("cloneset:", d.ink.yellow(said))
	refused := make(chan struct{})
	group.Go(func() error { return d.drain(ctx, c, sync.OnceFunc(func() { close(refused) })) })
	select {
	case <-ctx.Done():
		return fmt.Errorf("no eviction was refused: %w", ctx.Err())
	case <-refused:
	}
	d.title("One pod may be unavailable: both go on")
	c.floor.Store(wanted - 1)
	return d.kubectl(ctx, "", "-n", namespace, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
}

// awaitWords waits until the CloneSet says that the budget holds it up, and returns what it says.
func (d *demo) awaitWords(ctx context.Context) (string, error) {
	for {
		text, err := d.read(ctx, d.kind+"/web", `{range .status.conditions[*]}{.type} is {.status}, {.reason}: {.message}{"\n"}{end}`)
		if err != nil {
			return "", err
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, refusal) {
				return strings.TrimSpace(line), nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the CloneSet does not say that the budget holds it up: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// drain empties the node of the demo's pods, whatever else there is, shows what kubectl says, and calls refused when evictions are refused.
func (d *demo) drain(ctx context.Context, c *course, refused func()) error {
	args := []string{"drain", c.node, "--ignore-daemonsets", "--pod-selector=" + ofDemo}
	fmt.Println(d.ink.dim("$ kubectl " + strings.Join(args, " ")))
	out := &lines{each: func(line string) {
		if strings.Contains(line, refusal) {
			c.refused.Add(1)
			line = d.ink.yellow(line)
			defer refused()
		}
		fmt.Println("drain:", line)
	}}
	command := d.command(ctx, args...)
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl drain: %w", err)
	}
	return nil
}

// course is what happens to the pods while a node is drained.
type course struct {
	ink     ink
	node    string       // that is drained
	image   string       // that pods get
	floor   atomic.Int32 // pods that must stay available
	refused atomic.Int32 // evictions
	least   int          // pods that were available at any time
}

// tell shows how many pods are available and why others are not. It is done when all have the new image and none is on
// the drained node, and fails below the floor.
func (c *course) tell(pods []*corev1.Pod) moment {
	available, away, updated := 0, 0, 0
	var why []string
	for _, o := range pods {
		s := podstate.Of(o, time.Now(), 0)
		switch {
		case s.Terminating:
			why = append(why, o.Name+" leaves "+o.Spec.NodeName)
		case s.Ready:
			available++
		case podstate.HeldByUpdate(o) || s.Restarts > 0:
			why = append(why, o.Name+" restarts in place")
		default:
			why = append(why, o.Name+" starts")
		}
		if o.Spec.NodeName != c.node {
			away++
		}
		if o.Spec.Containers[0].Image == c.image {
			updated++
		}
	}
	c.least = min(c.least, available)
	floor := int(c.floor.Load())
	now := moment{
		line: strings.TrimSpace(fmt.Sprintf("%s  available %d, floor %d  %s",
			c.ink.bar(available, wanted-available), available, floor, c.ink.dim(strings.Join(why, ", ")))),
		done: available == wanted && len(pods) == wanted && away == wanted && updated == wanted,
	}
	if available < floor {
		now.err = fmt.Errorf("%d pods are available, and %d must be", available, floor)
	}
	return now
}

// crowded returns the node with the most of the pods.
func crowded(pods []corev1.Pod) (node string) {
	on := map[string]int{}
	for i := range pods {
		name := pods[i].Spec.NodeName
		if on[name]++; on[name] > on[node] {
			node = name
		}
	}
	return node
}
