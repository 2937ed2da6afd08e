package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// statefulSet is the StatefulSet that is shown, at v1 of the application and with ordinal 1 reserved.
//
//go:embed statefulset.yaml
var statefulSet string

// showStatefulSet changes the image of running pods, two at a time, and replaces one of them by one with another
// ordinal.
func showStatefulSet(ctx context.Context, d *demo) error {
	d.title("A StatefulSet of four pods, without ordinal 1")
	old, err := d.begin(ctx, "statefulset.apps.kruise.io", statefulSet)
	if err != nil {
		return err
	}
	if err := named(old, "web-0", "web-2", "web-3", "web-4"); err != nil {
		return err
	}
	d.title("A new image, for two pods at a time")
	now, took, err := d.newImage(ctx, old)
	if err != nil {
		return err
	}
	d.title("Ordinal 3 is reserved, too")
	moved, err := d.change(ctx, "merge", `{"spec":{"reserveOrdinals":[1,3]}}`)
	if err != nil {
		return err
	}
	fmt.Print(d.table(now, moved))
	if err := named(moved, "web-0", "web-2", "web-4", "web-5"); err != nil {
		return err
	}
	fmt.Printf("\n%s in %.1f s, two at a time, each pod restarted its one container with the new image and kept its name, UID,\n"+
		"IP and node. Then web-3 left and web-5 came in its place: four pods run, and ordinals 1 and 3 are free.\n",
		d.ink.green("What you just saw:"), took.Seconds())
	d.tryNext(
		"kubectl -n demo get asts web -o wide                     # the columns of a rollout",
		`kubectl -n demo patch asts web --type=merge -p '{"spec":{"replicas":3,"reserveOrdinals":[1,"3-4"]}}'`,
		"                                                         # web-4 goes, nobody comes",
		"kubectl -n demo label pod web-0 apps.kruise.io/specified-delete=true",
		"                                                         # a new pod under the same name",
	)
	return nil
}

// named returns an error unless the pods have these names.
func named(pods []corev1.Pod, want ...string) error {
	var names []string
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	if !slices.Equal(names, want) {
		return fmt.Errorf("the pods are %v, not %v", names, want)
	}
	return nil
}
