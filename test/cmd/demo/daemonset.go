package main

import (
	"context"
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// daemonSet is the DaemonSet that is shown, at v1 of the application.
//
//go:embed daemonset.yaml
var daemonSet string

// showDaemonSet changes the image of running pods, one node after the other, and tries another one on a node that then goes
// back.
func showDaemonSet(ctx context.Context, d *demo) error {
	d.title("A DaemonSet: a pod on each node")
	old, err := d.begin(ctx, "daemonset.apps.kruise.io", daemonSet)
	if err != nil {
		return err
	}
	d.title("A new image, on one node after the other")
	now, took, err := d.newImage(ctx, old)
	if err != nil {
		return err
	}
	d.title("A canary on one node")
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q},`+
		`{"op":"add","path":"/spec/updateStrategy/rollingUpdate/partition","value":%d},`+
		`{"op":"add","path":"/spec/updateStrategy/rollingUpdate/unselectedNodePolicy","value":"Revert"}]`,
		old[0].Spec.Containers[0].Image, len(now)-1)
	canary, err := d.change(ctx, "json", patch)
	if err != nil {
		return err
	}
	fmt.Print(d.table(now, canary))
	if n := withImage(canary, d.updatedImage()); n != len(canary)-1 {
		return fmt.Errorf("%d of %d pods have the image before, not all but one", n, len(canary))
	}
	d.title("The canary goes back")
	back, err := d.change(ctx, "merge", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":"100%"}}}}`)
	if err != nil {
		return err
	}
	fmt.Print(d.table(canary, back))
	if n := withImage(back, d.updatedImage()); n != len(back) {
		return fmt.Errorf("%d of %d pods have the image that all nodes had, not all", n, len(back))
	}
	fmt.Printf("\n%s in %.1f s each node's pod restarted its one container with the new image and kept its name, UID, IP and\n"+
		"node. Then one node tried another image. The partition took it out of the update, and its pod went back to the image that\n"+
		"all nodes had.\n",
		d.ink.green("What you just saw:"), took.Seconds())
	d.tryNext(
		"kubectl -n demo get ads web -o wide                      # the columns of a rollout",
		"kubectl cordon NODE && kubectl -n demo get pods -o wide  # a cordoned node keeps its pod",
		`kubectl -n demo patch ads web --type=merge -p '{"spec":{"template":{"spec":{"nodeSelector":{"color":"blue"}}}}}'`,
		"kubectl label node NODE color=blue                       # pods run where the label is",
	)
	return nil
}

// withImage counts the pods with the image.
func withImage(pods []corev1.Pod, image string) int {
	n := 0
	for i := range pods {
		if pods[i].Spec.Containers[0].Image == image {
			n++
		}
	}
	return n
}
