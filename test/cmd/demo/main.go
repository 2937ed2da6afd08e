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

	"github.com/flotilla-project/flotilla/kustomize/release/images"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
)

const (
	namespace = "demo"
	// application is the repository of the images that pods run.
	application = images.DemoApp
)

// show is the demo of a feature, run when the cluster and the operator are ready.
type show struct {
	feature string
	run     func(ctx context.Context, d *demo) error
}

// shows returns the demos of features, in the order of the one of all: that of jobs shows the agents of daemon, too. That of
// budget comes last, because its budget holds up whoever removes its pods.
func shows() []show {
	return []show{
		{"cloneset", showCloneSet},
		{"statefulset", showStatefulSet},
		{"daemonset", showDaemonSet},
		{"jobs", showJobs},
		{"spread", showSpread},
		{"budget", showBudget},
	}
}

// names returns the names of all demos.
func names() []string {
	var found []string
	for _, show := range shows() {
		found = append(found, show.feature)
	}
	return append(found, everything)
}

func main() {
	nodes := flag.Int("nodes", cluster.DefaultNodes, "how many nodes to start")
	name := flag.String("name", cluster.DefaultName, "name of the cluster")
	kubeconfig := flag.String("kubeconfig", "", "use the cluster of this file, and start none")
	registry := flag.String("registry", "", "with --kubeconfig: HOST[:PORT][/PATH] that images are pushed to, and that the cluster pulls from")
	feature := flag.String("feature", "cloneset", "what to show: "+strings.Join(slices.Sorted(slices.Values(names())), ", "))
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{
		ink:       newInk(os.Stdout),
		started:   time.Now(),
		feature:   *feature,
		installed: map[string]bool{},
	}
	reach := func(ctx context.Context) error {
		return d.start(ctx, cluster.Options{
			Name:  *name,
			Nodes: *nodes,
			Out:   os.Stdout,
		})
	}
	if *kubeconfig != "" || *registry != "" || isSet("kubeconfig") {
		reach = func(ctx context.Context) error { return d.join(ctx, *kubeconfig, *registry) }
	}
	if err := d.run(ctx, reach); err != nil {
		fmt.Fprintln(os.Stderr, d.ink.red("demo: "+err.Error()))
		if d.logs != "" {
			fmt.Fprintln(os.Stderr, "look at:", d.logs)
		}
		os.Exit(1)
	}
}

// isSet reports whether a flag was given, also if it is empty.
func isSet(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

type demo struct {
	ink     ink
	started time.Time
	feature string
	kind    string // of the workload, as kubectl names it
	target  install.Target
	nodes   []string // that take pods
	api     kubernetes.Interface
	logs    string // command that shows the log to look at when the present step fails

	joined    bool            // the cluster was there before
	installed map[string]bool // features
	within    bool            // the demo of all, which ends with its own suggestions
}

func (d *demo) run(ctx context.Context, reach func(context.Context) error) error {
	if !slices.Contains(names(), d.feature) {
		return fmt.Errorf("there is no demo of %q", d.feature)
	}
	if err := reach(ctx); err != nil {
		return err
	}
	d.title("The images of the application that is shown")
	if err := d.target.Apps(ctx, os.Stdout); err != nil {
		return err
	}
	if d.feature == everything {
		return showAll(ctx, d)
	}
	if err := d.operator(ctx, d.feature); err != nil {
		return err
	}
	return d.show(ctx, d.feature)
}

// show runs the demo of a feature.
func (d *demo) show(ctx context.Context, feature string) error {
	i := slices.IndexFunc(shows(), func(s show) bool { return s.feature == feature })
	return shows()[i].run(ctx, d)
}

// start starts a cluster on this machine.
func (d *demo) start(ctx context.Context, o cluster.Options) error {
	d.title("A real Kubernetes on this machine")
	d.logs = "go run ./test/cluster/cmd/cluster logs"
	c, err := cluster.Start(ctx, o)
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	d.target = install.Local(c)
	for _, node := range c.Nodes() {
		d.nodes = append(d.nodes, node.Name())
	}
	if d.api, err = kubernetes.NewForConfig(c.RESTConfig()); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return nil
}

// updatedImage returns what pods call the second version of the application.
func (d *demo) updatedImage() string { return d.target.Image(application) + ":v2" }

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
	if err := d.target.Feature(ctx, feature, os.Stdout); err != nil {
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
	if err := d.quietly(ctx, "label", "namespace", namespace, ofDemo); err != nil {
		return err
	}
	return d.sample(ctx, sample, "--force-conflicts")
}

// sample applies objects whose pods run the application.
func (d *demo) sample(ctx context.Context, sample string, flags ...string) error {
	text := strings.ReplaceAll(sample, application+":", d.target.Image(application)+":")
	return d.kubectl(ctx, text, append([]string{"apply", "--server-side", "-f", "-"}, flags...)...)
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
	now, err = d.change(ctx, "json", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"`+d.updatedImage()+`"}]`)
	if err != nil {
		return nil, 0, err
	}
	took = time.Since(started)
	d.title("Before and after")
	fmt.Print(d.table(old, now))
	return now, took, same(old, now, d.updatedImage())
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

// same returns an error unless every pod has the image and has kept what an in-place update keeps.
func same(old, now []corev1.Pod, image string) error {
	if len(old) != len(now) {
		return fmt.Errorf("there were %d pods and now there are %d", len(old), len(now))
	}
	for i := range old {
		a, b := &old[i], &now[i]
		if a.UID != b.UID || a.Name != b.Name || a.Status.PodIP != b.Status.PodIP || a.Spec.NodeName != b.Spec.NodeName {
			return fmt.Errorf("pod %s (UID %s) did not stay itself: it is %s (UID %s) now", a.Name, a.UID, b.Name, b.UID)
		}
		if has := b.Spec.Containers[0].Image; has != image {
			return fmt.Errorf("pod %s has image %s, not %s", b.Name, has, image)
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
	fmt.Printf("  export KUBECONFIG=%s\n", d.target.Kubeconfig)
	lines = append(lines, "kubectl -n demo get events --sort-by=.lastTimestamp      # what the operator did, in its words")
	for _, line := range slices.Concat(withCommand(d.kind), lines, d.cleanUp()) {
		fmt.Println("  " + line)
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		fmt.Printf("kubectl is %s\n", d.target.Kubectl)
	}
	fmt.Printf("\nThe demo took %.0f s; the cluster is still running.\n", time.Since(d.started).Seconds())
}

// cleanUp returns how to remove what the demo has made.
func (d *demo) cleanUp() []string {
	if !d.joined {
		return []string{"make down                                                # remove the cluster"}
	}
	lines := []string{
		"kubectl delete namespace demo                            # remove what was shown",
		"bin/flotilla uninstall " + strings.Join(slices.Sorted(maps.Keys(d.installed)), " ") + "   # and the operators",
	}
	if d.installed["spread"] {
		lines = append(lines, "kubectl label nodes --all "+zoneLabel+"-            # and the zones of nodes")
	}
	return lines
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
	command.Stdin = strings.NewReader(input)
	command.Stdout = os.Stdout
	command.Stderr = os.Stderr
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
	return d.target.Command(ctx, args...)
}

func (d *demo) kubectlLine(args ...string) string {
	return strings.Join(append([]string{"KUBECONFIG=" + d.target.Kubeconfig, d.target.Kubectl}, args...), " ")
}

func (d *demo) title(text string) {
	fmt.Printf("\n%s %s\n", d.ink.bold("== "+text), d.ink.dim(fmt.Sprintf("(%.0f s)", time.Since(d.started).Seconds())))
}
