package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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

// sample is the CloneSet that is shown, at v1 of the application.
//
//go:embed sample.yaml
var sample string

func main() {
	nodes := flag.Int("nodes", cluster.DefaultNodes, "how many nodes to start")
	name := flag.String("name", cluster.DefaultName, "name of the cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := &demo{ink: newInk(os.Stdout), started: time.Now()}
	if err := d.run(ctx, cluster.Options{Name: *name, Nodes: *nodes, Out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, d.ink.red("demo: "+err.Error()))
		if hint := d.hint(); hint != "" {
			fmt.Fprintln(os.Stderr, "look at:", hint)
		}
		os.Exit(1)
	}
}

type demo struct {
	ink     ink
	started time.Time
	cluster *cluster.Cluster
	api     kubernetes.Interface
	logs    string // command that shows the log to look at when the present step fails
}

func (d *demo) run(ctx context.Context, o cluster.Options) error {
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
	d.title("The CloneSet operator, from its overlay")
	d.logs = d.kubectlLine("-n", "flotilla-system", "logs", "deployment/cloneset-manager")
	if err := install.Apps(ctx, c, os.Stdout); err != nil {
		return err
	}
	if err := install.Feature(ctx, c, "cloneset", os.Stdout); err != nil {
		return err
	}
	return d.show(ctx)
}

// show creates the sample, changes its image and compares the pods.
func (d *demo) show(ctx context.Context) error {
	d.title("A CloneSet of three pods")
	if err := d.kubectl(ctx, sample, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return err
	}
	if err := d.settled(ctx); err != nil {
		return err
	}
	old, err := d.pods(ctx)
	if err != nil {
		return err
	}
	d.title("A new image")
	started := time.Now()
	patch := `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"` + after + `"}]`
	if err := d.kubectl(ctx, "", "-n", namespace, "patch", "cloneset", "web", "--type=json", "-p", patch); err != nil {
		return err
	}
	if err := d.settled(ctx); err != nil {
		return err
	}
	took := time.Since(started)
	now, err := d.pods(ctx)
	if err != nil {
		return err
	}
	d.title("Before and after")
	fmt.Print(d.table(old, now))
	if err := same(old, now); err != nil {
		return err
	}
	d.explain(took)
	return nil
}

// settled waits until the CloneSet is as its spec wants it.
func (d *demo) settled(ctx context.Context) error {
	if err := d.quietly(ctx, "-n", namespace, "wait", "cloneset/web", "--for=jsonpath={.status.observedGeneration}="+d.generation(ctx), "--timeout=60s"); err != nil {
		return err
	}
	return d.kubectl(ctx, "", "-n", namespace, "wait", "cloneset/web", "--for=condition=Ready", "--timeout=180s")
}

func (d *demo) generation(ctx context.Context) string {
	out, err := d.command(ctx, "-n", namespace, "get", "cloneset", "web", "-o", "jsonpath={.metadata.generation}").Output()
	if err != nil {
		return "0"
	}
	return string(out)
}

func (d *demo) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := d.api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	return list.Items, nil
}

// same fails unless every pod kept what an update in place keeps and has the new image.
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

func (d *demo) explain(took time.Duration) {
	fmt.Printf("\n%s in %.1f s, each pod restarted its one container with the new image and kept its name, UID, IP and node.\n",
		d.ink.green("What you just saw:"), took.Seconds())
	fmt.Printf("\n%s\n", d.ink.bold("What to try next"))
	fmt.Printf("  export KUBECONFIG=%s\n", d.cluster.Kubeconfig())
	fmt.Println("  kubectl -n demo get clone web -o wide                    # the columns of a rollout")
	fmt.Println("  kubectl -n demo scale clone web --replicas=5             # two more pods")
	fmt.Println(`  kubectl -n demo patch clone web --type=merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":"50%"}}}}'`)
	fmt.Println("                                                           # the next image reaches half of the pods")
	fmt.Println("  kubectl -n demo get events --sort-by=.lastTimestamp      # what the operator did, in its words")
	fmt.Println("  make down                                                # remove the cluster")
	if _, err := exec.LookPath("kubectl"); err != nil {
		fmt.Printf("kubectl is %s\n", d.cluster.Kubectl())
	}
	fmt.Printf("\nThe demo took %.0f s; the cluster is still running.\n", time.Since(d.started).Seconds())
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

func (d *demo) hint() string { return d.logs }

func (d *demo) title(text string) {
	fmt.Printf("\n%s %s\n", d.ink.bold("== "+text), d.ink.dim(fmt.Sprintf("(%.0f s)", time.Since(d.started).Seconds())))
}
