package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
)

const (
	namespace = "demo"
	after     = "flotilla/demo-app:v2"
)

// show is the demo of a feature, run when the cluster and the operator are ready.
type show func(ctx context.Context, d *demo) error

// shows returns the demos, by feature.
func shows() map[string]show {
	return map[string]show{
		"cloneset": showCloneSet, "statefulset": showStatefulSet, "daemonset": showDaemonSet, "jobs": showJobs,
		"budget": showBudget, "spread": showSpread, everything: showAll,
	}
}

func main() {
	nodes := flag.Int("nodes", cluster.DefaultNodes, "how many nodes to start")
	name := flag.String("name", cluster.DefaultName, "name of the cluster")
	feature := flag.String("feature", "cloneset", "what to show: "+strings.Join(slices.Sorted(maps.Keys(shows())), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{ink: newInk(os.Stdout), started: time.Now(), feature: *feature, installed: map[string]bool{}}
	if err := d.run(ctx, cluster.Options{Name: *name, Nodes: *nodes, Out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, d.ink.red("demo: "+err.Error()))
		if d.logs != "" {
			fmt.Fprintln(os.Stderr, "look at:", d.logs)
		}
		os.Exit(1)
	}
}

type demo struct {
	ink     ink
	started time.Time
	feature string
	kind    string // of the workload, as kubectl names it
	cluster *cluster.Cluster
	api     kubernetes.Interface
	logs    string // command that shows the log to look at when the present step fails

	installed map[string]bool // features
	within    bool            // the demo of all, which ends with its own suggestions
}

func (d *demo) run(ctx context.Context, o cluster.Options) error {
	show, ok := shows()[d.feature]
	if !ok {
		return fmt.Errorf("there is no demo of %q", d.feature)
	}
	d.title("A real Kubernetes on this machine")
	d.logs = "go run ./test/cluster/cmd/cluster logs"
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	d.cluster = c
	if d.api, err = kubernetes.NewForConfig(c.RESTConfig()); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	d.title("The images of the application that is shown")
	if err := install.Apps(ctx, c, os.Stdout); err != nil {
		return err
	}
	if d.feature != everything {
		if err := d.operator(ctx, d.feature); err != nil {
			return err
		}
	}
	return show(ctx, d)
}

// operator installs the feature that is shown next.
func (d *demo) operator(ctx context.Context, feature string) error {
	d.logs = d.logsOf(feature)
	return d.need(ctx, feature, "The operator of "+feature+", from its overlay")
}

// need installs a feature, unless this demo has done so.
func (d *demo) need(ctx context.Context, feature, title string) error {
	if d.installed[feature] {
		return nil
	}
	d.title(title)
	if err := install.Feature(ctx, d.cluster, feature, os.Stdout); err != nil {
		return err
	}
	d.installed[feature] = true
	return nil
}

// logsOf returns the command that shows the log of a feature's manager.
func (d *demo) logsOf(feature string) string {
	return d.kubectlLine("-n", install.Namespace, "logs", "deployment/"+feature+"-manager")
}

// begin recreates the sample, a workload "web" of the kind, and returns its pods when it is ready.
func (d *demo) begin(ctx context.Context, kind, sample string) ([]corev1.Pod, error) {
	d.kind = kind
	if err := d.apply(ctx, sample); err != nil {
		return nil, err
	}
	return d.settled(ctx)
}

// apply makes the namespace of the demo anew, with the sample in it.
func (d *demo) apply(ctx context.Context, sample string) error {
	if err := d.quietly(ctx, "delete", "namespace", namespace, "--ignore-not-found"); err != nil {
		return err
	}
	if err := d.quietly(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	return d.kubectl(ctx, sample, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// change patches the workload and returns its pods when it is ready again.
func (d *demo) change(ctx context.Context, kind, patch string) ([]corev1.Pod, error) {
	if err := d.kubectl(ctx, "", "-n", namespace, "patch", d.kind, "web", "--type="+kind, "-p", patch); err != nil {
		return nil, err
	}
	return d.settled(ctx)
}

// newImage updates the pods to the other version and shows them before and after. It returns the duration.
func (d *demo) newImage(ctx context.Context, old []corev1.Pod) (now []corev1.Pod, took time.Duration, err error) {
	started := time.Now()
	now, err = d.change(ctx, "json", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+after+`"}]`)
	if err != nil {
		return nil, 0, err
	}
	took = time.Since(started)
	d.title("Before and after")
	fmt.Print(d.table(old, now))
	return now, took, same(old, now)
}

// settled waits until the workload meets its spec, and returns its pods.
func (d *demo) settled(ctx context.Context) ([]corev1.Pod, error) {
	if err := d.quietly(ctx, "-n", namespace, "wait", d.kind+"/web", "--for=jsonpath={.status.observedGeneration}="+d.generation(ctx), "--timeout=60s"); err != nil {
		return nil, err
	}
	if err := d.kubectl(ctx, "", "-n", namespace, "wait", d.kind+"/web", "--for=condition=Ready", "--timeout=180s"); err != nil {
		return nil, err
	}
	list, err := d.api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(o corev1.Pod) bool { return o.DeletionTimestamp != nil }), nil
}

func (d *demo) generation(ctx context.Context) string {
	generation, err := d.read(ctx, d.kind+"/web", "{.metadata.generation}")
	if err != nil {
		return "0"
	}
	return generation
}

// read returns a field of an object.
func (d *demo) read(ctx context.Context, object, path string) (string, error) {
	out, err := d.command(ctx, "-n", namespace, "get", object, "-o", "jsonpath="+path).Output()
	if err != nil {
		return "", fmt.Errorf("read %s of %s: %w", path, object, err)
	}
	return string(out), nil
}

// same returns an error unless every pod has the new image and has kept what an in-place update keeps.
func same(old, now []corev1.Pod) error {
	if len(old) != len(now) {
		return fmt.Errorf("there were %d pods and now there are %d", len(old), len(now))
	}
	for i := range old {
		a, b := &old[i], &now[i]
		if a.UID != b.UID || a.Name != b.Name || a.Status.PodIP != b.Status.PodIP || a.Spec.NodeName != b.Spec.NodeName {
			return fmt.Errorf("pod %s (UID %s) did not stay itself: it is %s (UID %s) now", a.Name, a.UID, b.Name, b.UID)
		}
		if image := b.Spec.Containers[0].Image; image != after {
			return fmt.Errorf("pod %s has image %s, not %s", b.Name, image, after)
		}
	}
	return nil
}

// tryNext ends the demo with suggestions for the cluster, which keeps running. A demo within the one of all has none.
func (d *demo) tryNext(lines ...string) {
	if d.within {
		return
	}
	fmt.Printf("\n%s\n", d.ink.bold("What to try next"))
	fmt.Printf("  export KUBECONFIG=%s\n", d.cluster.Kubeconfig())
	for _, line := range append(withCommand(d.kind), append(lines, "kubectl -n demo get events --sort-by=.lastTimestamp      # what the operator did, in its words",
		"make down                                                # remove the cluster")...) {
		fmt.Println("  " + line)
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		fmt.Printf("kubectl is %s\n", d.cluster.Kubectl())
	}
	fmt.Printf("\nThe demo took %.0f s; the cluster is still running.\n", time.Since(d.started).Seconds())
}

// withCommand returns how to build flotilla and three things to try with it: about the workload "web" of the kind, or about
// what is installed where there is none.
func withCommand(kind string) []string {
	lines := []string{"go build -C kustomize -o ../bin/flotilla ./cmd/flotilla   # the command of Flotilla"}
	if kind == "" {
		return append(lines,
			"bin/flotilla status                                      # what is installed and healthy",
			"bin/flotilla versions                                    # of operators and kinds",
			"bin/flotilla doctor                                      # what is wrong, and what helps",
		)
	}
	for _, action := range []struct{ verb, what string }{
		{"rollout watch", "a cell for each pod, while it is updated"},
		{"rollout undo", "back to the earlier image"},
		{"explain", "why it waits, if it does"},
	} {
		lines = append(lines, fmt.Sprintf("%-56s # %s", "bin/flotilla -n demo "+action.verb+" "+kind+"/web", action.what))
	}
	return lines
}

// kubectl shows a command and runs it.
func (d *demo) kubectl(ctx context.Context, input string, args ...string) error {
	fmt.Println(d.ink.dim("$ kubectl " + strings.Join(args, " ")))
	command := d.command(ctx, args...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(input), os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return nil
}

// quietly runs a command and shows its output only when it fails.
func (d *demo) quietly(ctx context.Context, args ...string) error {
	if out, err := d.command(ctx, args...).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err), errors.New(strings.TrimSpace(string(out))))
	}
	return nil
}

func (d *demo) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, d.cluster.Kubectl(), append([]string{"--kubeconfig", d.cluster.Kubeconfig()}, args...)...)
}

func (d *demo) kubectlLine(args ...string) string {
	return strings.Join(append([]string{d.cluster.Kubectl(), "--kubeconfig", d.cluster.Kubeconfig()}, args...), " ")
}

func (d *demo) title(text string) {
	fmt.Printf("\n%s %s\n", d.ink.bold("== "+text), d.ink.dim(fmt.Sprintf("(%.0f s)", time.Since(d.started).Seconds())))
}
