package main

import (
	"context"
	_ "embed"
	"fmt"
)

// cloneSet is the CloneSet that is shown, at v1 of the application.
//
//go:embed cloneset.yaml
var cloneSet string

// showCloneSet changes the image of running pods.
func showCloneSet(ctx context.Context, d *demo) error {
	d.title("A CloneSet of three pods")
	old, err := d.begin(ctx, "cloneset", cloneSet)
	if err != nil {
		return err
	}
	d.title("A new image")
	_, took, err := d.newImage(ctx, old)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s in %.1f s, each pod restarted its one container with the new image and kept its name, UID, IP and node.\n",
		d.ink.green("What you just saw:"), took.Seconds())
	d.tryNext(
		"kubectl -n demo get clone web -o wide                    # the columns of a rollout",
		"kubectl -n demo scale clone web --replicas=5             # two more pods",
		`kubectl -n demo patch clone web --type=merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":"50%"}}}}'`,
		"                                                         # the next image reaches half of the pods",
	)
	return nil
}
