package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"
)

// jobsByNode are the jobs that are shown, and imagesByNode the images that are pulled, on every node.
var (
	//go:embed jobs.yaml
	jobsByNode string
	//go:embed images.yaml
	imagesByNode string
)

// showJobs runs a pod on every node, has a schedule do it at once, and pulls images on every node.
func showJobs(ctx context.Context, d *demo) error {
	if err := d.need(ctx, "daemon", "The node agents, which pull images"); err != nil {
		return err
	}
	d.title("A BroadcastJob: one pod on each node, to its end")
	if err := d.apply(ctx, jobsByNode); err != nil {
		return err
	}
	if err := d.broadcast(ctx, "check"); err != nil {
		return err
	}
	d.title("An AdvancedCronJob: the same every night, and once now")
	started := time.Now()
	if err := d.kubectl(ctx, "", "-n", namespace, "annotate", "acj", "nightly", "apps.kruise.io/run-now=demo"); err != nil {
		return err
	}
	if err := d.quietly(ctx, "-n", namespace, "wait", "acj/nightly", "--for=jsonpath={.status.active[0].name}", "--timeout=60s"); err != nil {
		return err
	}
	made := time.Since(started)
	child, err := d.read(ctx, "acj/nightly", "{.status.active[0].name}")
	if err != nil {
		return err
	}
	if err := d.broadcast(ctx, child); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", namespace, "get", "acj", "nightly", "-o", "custom-columns=SCHEDULE:.spec.schedule,NEXT:.status.nextScheduleTime,LAST-SUCCESS:.status.lastSuccessfulTime"); err != nil {
		return err
	}
	d.title("An ImageListPullJob: images on each node before a pod needs them")
	if err := d.sample(ctx, imagesByNode); err != nil {
		return err
	}
	if err := d.quietly(ctx, "-n", namespace, "wait", "imagelistpulljob/next", "--for=jsonpath={.status.completionTime}", "--timeout=120s"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", namespace, "get", "imagelistpulljobs,imagepulljobs"); err != nil {
		return err
	}
	n, err := d.read(ctx, "imagelistpulljob/next", "{.status.succeeded}")
	if err != nil {
		return err
	}
	if n != "2" {
		return fmt.Errorf("%s of 2 images are on all nodes", n)
	}
	fmt.Printf("\n%s each node ran a pod to its end, once. A schedule that is due at night made the same job %.1f s after it was\n"+
		"asked to. And two images are on all nodes, where pods can start without waiting for a registry.\n",
		d.ink.green("What you just saw:"), made.Seconds())
	d.tryNext(
		"kubectl -n demo get bcj,acj,imagelistpulljobs            # the columns of all of them",
		"kubectl -n demo annotate acj nightly apps.kruise.io/run-now=again --overwrite",
		"kubectl get nodeimages -o wide                           # what each node was asked to pull",
		"kubectl -n demo delete imagelistpulljob next             # its pulls end with it",
	)
	return nil
}

// broadcast waits until the BroadcastJob has completed, shows it and its pods, and checks that each node ran one.
func (d *demo) broadcast(ctx context.Context, name string) error {
	if err := d.kubectl(ctx, "", "-n", namespace, "wait", "bcj/"+name, "--for=condition=Complete", "--timeout=120s"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", namespace, "get", "bcj", name); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "-n", namespace, "get", "pods", "-l", "broadcastjob-name="+name, "-o", "wide"); err != nil {
		return err
	}
	text, err := d.read(ctx, "bcj/"+name, "{.status.succeeded}")
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(text); err != nil || n != len(d.nodes) {
		return fmt.Errorf("%s of %d nodes ran a pod", text, len(d.nodes))
	}
	return nil
}
