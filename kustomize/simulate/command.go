package simulate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// command has the flags of flotilla simulate.
type command struct {
	flags   genericclioptions.RESTClientGetter
	streams genericiooptions.IOStreams
	clock   clock.PassiveClock
	output  cli.Output

	manifest, pods, partition      string
	images, crash, loseNode, evict []string
	start                          time.Duration
	watch                          bool
}

// NewCommand returns "flotilla simulate".
func NewCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	c := &command{flags: flags, streams: streams, clock: clock.RealClock{}}
	cobraCommand := &cobra.Command{
		Use:   "simulate [KIND/NAME]",
		Short: "Play an edit of a workload before you make it",
		Long: `Play an edit of a CloneSet, StatefulSet or DaemonSet in a simulated cluster, from the present state of its pods, nodes,
budgets and quotas, with the plans of the operator. Nothing is written to the cluster.

The output has the batches of the rollout, its time, the fewest available pods, and the reason if it cannot end. The exit code
is 3 if the rollout cannot end or breaks a budget.`,
		Example: `  flotilla simulate clone/web --set-image main=registry.example.com/app:v2
  flotilla simulate -f web.yaml --crash app:v2
  flotilla simulate clone/web --lose-node node-7
  flotilla simulate -f web.yaml --pods state.yaml -o json   # without a cluster`,
		Args:              cli.Arguments(cobra.MaximumNArgs(2)),
		ValidArgsFunction: workload.Complete(flags),
		RunE:              func(command *cobra.Command, args []string) error { return c.run(command.Context(), args) },
	}
	set := cobraCommand.Flags()
	set.StringVarP(&c.manifest, "filename", "f", "", "manifest of the workload as you would apply it; - reads standard input")
	set.StringArrayVar(&c.images, "set-image", nil, "CONTAINER=IMAGE; may be repeated")
	set.StringVar(&c.partition, "partition", "", "number or percentage of pods that stay at the old revision")
	set.StringArrayVar(&c.crash, "crash", nil, "image whose containers exit soon after each start; may be repeated")
	set.StringArrayVar(&c.loseNode, "lose-node", nil, "node that stops answering right after the edit; may be repeated")
	set.StringArrayVar(&c.evict, "evict", nil, "pod that is evicted right after the edit; may be repeated")
	set.DurationVar(&c.start, "start", 0, "time from the start of a container until it is ready; 0 takes the one that the pods show")
	set.StringVar(&c.pods, "pods", "", "file with the workload, its pods and what is around them, instead of a cluster")
	set.BoolVar(&c.watch, "watch", false, "draw the rollout as flotilla rollout watch does")
	c.output.AddTo(set)
	return cobraCommand
}

func (c *command) run(ctx context.Context, args []string) error {
	edit, named, err := c.parse(args)
	if err != nil {
		return err
	}
	scene, edited, err := c.gather(ctx, named, edit)
	if err != nil {
		return err
	}
	played := forecast.Edit{To: edited, LoseNodes: c.loseNode, Evict: c.evict}
	if played.Crash, err = crashing(cmp.Or(edited, scene.Set), c.crash); err != nil {
		return err
	}
	if err := exist(scene, c.loseNode, c.evict); err != nil {
		return err
	}
	if c.start > 0 {
		times := forecast.Learn(scene.Pods)
		times.Starting, times.Learnt = c.start, 0
		played.Times = &times
	}
	f, err := forecast.Play(ctx, scene, played)
	if err == nil && c.watch { // once more, because a film must know how long it is
		played.Shown = c.draw(ctx, f.Seconds)
		f, err = forecast.Play(ctx, scene, played)
	}
	if err != nil {
		return err
	}
	return c.tell(f, scene)
}

// parse reads the edit and the name of the workload.
func (c *command) parse(args []string) (change, workload.Named, error) {
	var edit change
	var named workload.Named
	var err error
	if edit.images, err = parseImages(c.images); err != nil {
		return edit, named, err
	}
	edit.partition = c.partition
	if c.manifest != "" {
		if edit.manifest, named, err = manifestOf(c.manifest, c.streams.In); err != nil {
			return edit, named, err
		}
	}
	if len(args) == 0 {
		if edit.manifest == nil {
			return edit, named, cli.MisuseErrorf("name a workload, such as cloneset/web, or a manifest with -f")
		}
		return edit, named, nil
	}
	of, err := workload.Parse(args)
	if err == nil && edit.manifest != nil && of.String() != named.String() {
		err = cli.MisuseErrorf("-f has %s, and the command names %s", named, of)
	}
	return edit, of, err
}

// manifestOf reads the one workload of a file.
func manifestOf(file string, in io.Reader) (*unstructured.Unstructured, workload.Named, error) {
	objects, err := forecast.Objects(file, in)
	if err != nil {
		return nil, workload.Named{}, err
	}
	var found *unstructured.Unstructured
	var named workload.Named
	for _, o := range objects {
		kind, err := workload.KindNamed(o.GetKind() + "." + o.GroupVersionKind().Group)
		if err != nil {
			continue
		}
		if found != nil {
			return nil, named, cli.MisuseErrorf("%s has several workloads, such as %s: simulate plays one", file, named)
		}
		found = o
		named = workload.Named{Kind: kind, Name: o.GetName()}
	}
	if found == nil {
		return nil, named, cli.MisuseErrorf("%s has no CloneSet, StatefulSet or DaemonSet of %s", file, workload.Group)
	}
	return found, named, nil
}

// gather returns the scene and the workload as the edit leaves it, nil without an edit.
func (c *command) gather(ctx context.Context, named workload.Named, edit change) (*forecast.Scene, *unstructured.Unstructured, error) {
	if c.pods != "" {
		objects, err := forecast.Objects(c.pods, c.streams.In)
		if err != nil {
			return nil, nil, err
		}
		scene, err := forecast.Files(objects, named, c.clock.Now())
		if err != nil || edit.none() {
			return scene, nil, err
		}
		edited, err := edit.apply(named.Kind, scene.Set)
		return scene, edited, err
	}
	client, err := workload.Connect(c.flags)
	if err != nil {
		return nil, nil, err
	}
	if edit.manifest != nil && edit.manifest.GetNamespace() != "" {
		client.Namespace = edit.manifest.GetNamespace()
	}
	scene, err := forecast.Read(ctx, client, named, edit.manifest, c.clock.Now())
	if err != nil {
		return nil, nil, err
	}
	scene.ReadOthers(ctx, client)
	scene.ReadVolumes(ctx, client)
	if edit.none() || scene.Set.GetResourceVersion() == "" {
		return scene, nil, nil
	}
	edited, err := edit.apply(named.Kind, scene.Set)
	if err != nil {
		return nil, nil, err
	}
	edited, err = dryRun(ctx, client, scene, edited)
	return scene, edited, err
}

// exist checks that the nodes and pods are there which the command names.
func exist(scene *forecast.Scene, nodes, pods []string) error {
	have := map[string]bool{}
	for _, node := range scene.Nodes {
		have["node "+node.Name] = true
	}
	for _, pod := range scene.Pods {
		have["pod "+pod.Name], have["node "+pod.Spec.NodeName] = true, true
	}
	for _, name := range nodes {
		if !have["node "+name] {
			return cli.MisuseErrorf("--lose-node %s: there is no such node", name)
		}
	}
	for _, name := range pods {
		if !have["pod "+name] {
			return cli.MisuseErrorf("--evict %s: the workload has no such pod", name)
		}
	}
	return nil
}

// tell prints the forecast and returns the answer of the command.
func (c *command) tell(f *forecast.Report, scene *forecast.Scene) error {
	f.Assumed = append(f.Assumed, scene.Unread...)
	if features, err := catalog.Select(scene.Kind.Feature); err == nil {
		f.Version = features[0].Version
		f.Running = scene.Running
	}
	if f.Running != "" && f.Running != f.Version {
		f.Assumed = append(f.Assumed, fmt.Sprintf("the cluster runs %s %s; this command plays %s", scene.Kind.Feature, f.Running, f.Version))
	}
	if c.output != "" {
		if err := c.output.Print(c.streams.Out, f); err != nil {
			return err
		}
	} else {
		f.Print(c.streams.Out)
	}
	if !f.Holds() {
		return &cli.ExitError{Code: cli.NotSo, Message: ""}
	}
	return nil
}
