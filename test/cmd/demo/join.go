package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-project/flotilla/test/install"
)

// oldest is the first release of Kubernetes that operators run on.
const oldest = "1.33"

// ofDemo is the label of the demo's namespace, and of pods that it evicts.
const ofDemo = "app.kubernetes.io/part-of=flotilla-demo"

// madeByDemo is the label of operators that a demo has installed.
const madeByDemo = "apps.kruise.io/made-by=demo"

// join uses a cluster that is there, which must be able to pull from the registry. It leaves alone what is not its own.
func (d *demo) join(ctx context.Context, kubeconfig, registry string) error {
	if kubeconfig == "" || registry == "" {
		return errors.New("a cluster that is there needs both: KUBECONFIG=file REGISTRY=host/path, from which the cluster can pull")
	}
	d.title("The cluster of " + kubeconfig)
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return fmt.Errorf("find kubectl: %w", err)
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	if len(rules.Precedence) == 1 {
		rules.ExplicitPath = kubeconfig // must be there
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	if d.api, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	release, err := d.kubernetes()
	if err != nil {
		return err
	}
	list, err := d.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	var platforms []string
	if d.nodes, platforms = usable(list.Items); len(d.nodes) == 0 {
		return errors.New("no node of the cluster is ready and takes pods")
	}
	d.joined = true
	d.target = install.Target{
		Kubectl:    kubectl,
		Kubeconfig: kubeconfig,
		Registry:   strings.TrimSuffix(registry, "/"),
		Named:      true,
		Platforms:  platforms,
		Label:      madeByDemo,
	}
	fmt.Printf("Kubernetes %s, %d nodes that take pods, %s\n", release, len(d.nodes), strings.Join(platforms, " and "))
	return d.spareOthers(ctx)
}

// kubernetes returns the release of the cluster, and an error if the operators do not run on it.
func (d *demo) kubernetes() (string, error) {
	info, err := d.api.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask the cluster for its version: %w", err)
	}
	if release, err := version.ParseGeneric(info.GitVersion); err == nil && release.LessThan(version.MustParseGeneric(oldest)) {
		return "", fmt.Errorf("the cluster has Kubernetes %s; the operators need %s or newer", info.GitVersion, oldest)
	}
	return info.GitVersion, nil
}

// usable returns the nodes that any pod can be on, and their platforms.
func usable(nodes []corev1.Node) (names, platforms []string) {
	found := map[string]bool{}
	for i := range nodes {
		node := &nodes[i]
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if ready && !tainted && !node.Spec.Unschedulable {
			names = append(names, node.Name)
			found["linux/"+node.Status.NodeInfo.Architecture] = true
		}
	}
	return names, slices.Sorted(maps.Keys(found))
}

// spareOthers returns an error if the demo would replace what is not its own: operators that are in use, CRDs of OpenKruise, or a
// namespace.
func (d *demo) spareOthers(ctx context.Context) error {
	if err := d.spareOperators(ctx); err != nil {
		return err
	}
	out, err := d.command(ctx, "get", "crds", "-l", "app.kubernetes.io/part-of!=flotilla", "-o", "name").Output()
	if err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	if found := foreign(string(out)); len(found) > 0 {
		return fmt.Errorf("somebody else's CRDs are there, %s: docs/migrate/takeover.md tells how to take over from OpenKruise", strings.Join(found, ", "))
	}
	label, value, _ := strings.Cut(ofDemo, "=")
	out, err = d.command(ctx, "get", "namespaces", "--field-selector=metadata.name="+namespace, "-l", label+"!="+value, "-o", "name").Output()
	if err != nil {
		return fmt.Errorf("look for namespace %s: %w", namespace, err)
	}
	if len(out) > 0 {
		return fmt.Errorf("namespace %s is there and was not made by a demo, which would delete it", namespace)
	}
	return nil
}

// spareOperators returns an error if there are operators that no demo has made. A demo would replace their images and arguments,
// and end with the advice to remove them.
func (d *demo) spareOperators(ctx context.Context) error {
	label, value, _ := strings.Cut(madeByDemo, "=")
	deployments, err := d.api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=flotilla," + label + "!=" + value})
	if err != nil {
		return fmt.Errorf("look for operators: %w", err)
	}
	var found []string
	for i := range deployments.Items {
		found = append(found, deployments.Items[i].Namespace+"/"+deployments.Items[i].Name)
	}
	if len(found) > 0 {
		return fmt.Errorf("operators of Flotilla run here, and no demo has installed them: Deployments %s; use another cluster, or remove them: flotilla uninstall all",
			strings.Join(found, ", "))
	}
	return nil
}

// foreign returns the CRDs of the kinds that operators are installed for among those that kubectl names, one a line.
func foreign(crds string) []string {
	var found []string
	for line := range strings.Lines(crds) {
		_, crd, _ := strings.Cut(strings.TrimSpace(line), "/")
		if _, group, _ := strings.Cut(crd, "."); group == "apps.kruise.io" || group == "policy.kruise.io" {
			found = append(found, crd)
		}
	}
	return found
}
