package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// patience is how long a stage may take by default.
const patience = 3 * time.Minute

// How --dry-run may be given.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// NewCommand returns "flotilla install".
func NewCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	var i installer
	var choices Choices
	var output cli.Output
	command := &cobra.Command{
		Use:   "install FEATURE...",
		Short: "Install or upgrade operators",
		Long: `Install or upgrade operators, one after the other: namespace, CRDs, permissions, manager and webhooks, in this order.
The command waits for each of these stages. Settings are remembered: if you omit --registry, --version, --component, --without,
--feature-gates or --only-namespace, the values of the last install are used. --defaults discards them. Objects that an earlier install applied and these manifests no longer contain
are deleted, except CRDs and namespaces.

The command refuses to run if OpenKruise manages the kinds (use "flotilla takeover"), or if a newer version is installed.

"all" means every feature. Pods of workloads stay unchanged.`,
		Example: `  flotilla install cloneset jobs --registry registry.example.com/team
  flotilla install all --component highavailability,prometheus
  flotilla install jobs --feature-gates SidecarTerminator=true --diff
  flotilla install jobs --without pullsecrets
  flotilla install cloneset --only-namespace team
  flotilla install cloneset --dry-run=client > cloneset.yaml`,
		Args:              cli.Arguments(Features),
		ValidArgsFunction: completeFeatures,
		RunE: func(command *cobra.Command, names []string) error {
			features, err := catalog.Select(names...)
			if err != nil {
				return cli.MisuseErrorf("%s", err)
			}
			for _, flag := range []string{"registry", "only-namespace", "image-pull-secret"} {
				if given := command.Flags().Lookup(flag); given.Changed && given.Value.String() == "" {
					return cli.MisuseErrorf("--%s must not be empty. To reset it, run with --defaults and repeat the settings you want to keep", flag)
				}
			}
			i.settings, err = Read(features, choices)
			if err != nil {
				return err
			}
			if i.dryRun != dryRunNone && i.dryRun != dryRunClient && i.dryRun != dryRunServer {
				return cli.MisuseErrorf("invalid --dry-run %q: use none, client or server", i.dryRun)
			}
			if output != "" && i.dryRun == dryRunClient {
				return cli.MisuseErrorf("--output cannot be used with --dry-run=client, which prints manifests: use --dry-run=server")
			}
			report := &cli.Report{Command: "install", DryRun: i.diff || i.dryRun != dryRunNone}
			return cli.Reporting(command.Context(), flags, streams, output, report, func(
				flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams, report *cli.Report,
			) error {
				i.streams, i.report = streams, report
				return i.run(command.Context(), flags, features)
			})
		},
	}
	set := command.Flags()
	choices.AddTo(set)
	set.StringVar(&choices.OnlyNamespace, "only-namespace", "", "restrict operators and their permissions to this namespace")
	set.BoolVar(&i.defaults, "defaults", false, "discard the settings of earlier installs")
	set.StringVar(&i.dryRun, "dry-run", dryRunNone, `none, client or server: "client" prints the manifests for these flags alone, "server" checks them against the cluster without a write`)
	set.BoolVar(&i.diff, "diff", false, "show the changes without applying them; the exit code is 3 if there are any")
	set.BoolVar(&i.force, "force-conflicts", false, "overwrite fields that another tool has set, such as kubectl")
	set.BoolVar(&i.downgrade, "allow-downgrade", false, "install manifests that are older than the installed ones")
	set.BoolVar(&i.prune, "prune", true, "delete objects of earlier installs that the manifests no longer contain, except CRDs and namespaces")
	set.BoolVar(&i.wait, "wait", true, "wait until the operators are ready")
	set.DurationVar(&i.timeout, "timeout", patience, "time limit of each stage")
	set.Lookup("dry-run").NoOptDefVal = dryRunServer
	output.AddTo(set)
	return command
}

// Features is the check of arguments that name features: there is one at least.
func Features(_ *cobra.Command, names []string) error {
	if len(names) > 0 {
		return nil
	}
	features, err := catalog.Features()
	if err != nil {
		return err
	}
	var known []string
	for _, feature := range features {
		known = append(known, feature.Name)
	}
	return fmt.Errorf("name a feature: %s, or %s for all of them", strings.Join(known, ", "), catalog.All)
}

// completeFeatures offers the features that are not named yet.
func completeFeatures(_ *cobra.Command, named []string, _ string) ([]string, cobra.ShellCompDirective) {
	features, err := catalog.Features()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	offered := []string{catalog.All}
	for _, feature := range features {
		offered = append(offered, feature.Name)
	}
	for _, name := range named {
		offered = without(offered, name)
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

func without(all []string, one string) []string {
	var kept []string
	for _, name := range all {
		if name != one {
			kept = append(kept, name)
		}
	}
	return kept
}

type installer struct {
	streams  genericiooptions.IOStreams
	report   *cli.Report
	settings Settings
	// defaults begins without the settings of an earlier install.
	defaults    bool
	dryRun      string
	diff        bool
	force, wait bool
	// prune deletes the objects that the manifests no longer have.
	prune bool
	// guard makes OpenKruise's manager pass the CRDs over, which continue to store objects in the version of before.
	guard bool
	// downgrade allows manifests that are older than the installed ones.
	downgrade bool
	timeout   time.Duration
}

// part has the objects that are installed together.
type part struct {
	name    string
	objects []*unstructured.Unstructured
	// stale are the objects that an earlier install applied and that are not among the objects any more.
	stale []*unstructured.Unstructured
}

func (i *installer) run(ctx context.Context, flags genericclioptions.RESTClientGetter, features []catalog.Feature) error {
	if i.dryRun == dryRunClient {
		return i.printWithoutCluster(features)
	}
	cluster, err := apply.Connect(flags)
	if err != nil {
		return err
	}
	if _, err := cluster.Version(); err != nil {
		return err
	}
	var chosen []Settings
	parts, err := parts(features, func(feature catalog.Feature) (Settings, error) {
		settings, err := i.recall(ctx, cluster, feature)
		chosen = append(chosen, settings)
		return settings, errors.Join(err, settings.FromSomewhere())
	})
	if apierrors.IsForbidden(err) {
		return errors.Join(err, i.checkRights(ctx, cluster, features))
	}
	if err != nil {
		return err
	}
	if err := checkPatches(i.settings.Patches, parts); err != nil {
		return err
	}
	var all []*unstructured.Unstructured
	for _, p := range parts {
		all = append(all, p.objects...)
	}
	if err := i.findStale(ctx, cluster, parts, all); err != nil {
		return err
	}
	var stale []*unstructured.Unstructured
	for _, p := range parts {
		stale = append(stale, p.stale...)
	}
	if err := i.admit(ctx, cluster, parts); err != nil {
		return err
	}
	if i.diff {
		return i.compare(ctx, cluster, all, stale)
	}
	if err := errors.Join(cluster.Check(ctx, all, "create", "patch"), cluster.Check(ctx, stale, "delete"), findNamespaces(ctx, cluster, chosen)); err != nil {
		return err
	}
	progress := apply.NewProgress(i.streams.Out)
	for _, p := range parts {
		if err := i.install(ctx, cluster, progress, p); err != nil {
			return fmt.Errorf("install %s: %w", p.name, err)
		}
	}
	return nil
}

// printWithoutCluster prints the manifests of the features with the settings that were given.
func (i *installer) printWithoutCluster(features []catalog.Feature) error {
	if err := i.settings.FromSomewhere(); err != nil {
		return err
	}
	parts, err := parts(features, func(feature catalog.Feature) (Settings, error) { return i.settings.Over(feature, Settings{}), nil })
	if err != nil {
		return err
	}
	if err := checkPatches(i.settings.Patches, parts); err != nil {
		return err
	}
	return printAll(i.streams.Out, parts)
}

// checkRights returns which rights are missing to install the features with the settings that were given.
func (i *installer) checkRights(ctx context.Context, cluster *apply.Cluster, features []catalog.Feature) error {
	parts, err := parts(features, func(feature catalog.Feature) (Settings, error) { return i.settings.Over(feature, Settings{}), nil })
	for _, p := range parts {
		err = errors.Join(err, cluster.Check(ctx, p.objects, "create", "patch"))
	}
	return err
}

// parts renders the namespace and then each feature with its settings.
func parts(features []catalog.Feature, settingsOf func(catalog.Feature) (Settings, error)) ([]part, error) {
	base, err := Base()
	if err != nil {
		return nil, err
	}
	parts := []part{{name: Namespace, objects: base}}
	for _, feature := range features {
		settings, err := settingsOf(feature)
		if err != nil {
			return nil, err
		}
		objects, err := Manifests(feature, settings)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{name: feature.Name, objects: objects})
	}
	return parts, nil
}

// install applies a part stage by stage.
func (i *installer) install(ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, p part) error {
	awaited := i.wait && i.dryRun == dryRunNone && p.name != Namespace
	var strict []*unstructured.Unstructured // webhook configurations for the time when the operator answers
	for _, stage := range apply.Stages(p.objects) {
		if stage.Name == apply.Webhooks && awaited {
			var err error
			if stage.Objects, strict, err = lenient(ctx, cluster, stage.Objects); err != nil {
				return err
			}
		}
		if err := i.stage(ctx, cluster, progress, p.name, stage); err != nil {
			return err
		}
	}
	if err := i.removeStale(ctx, cluster, progress, p, true); err != nil {
		return err
	}
	if awaited {
		if err := i.awaitReady(ctx, cluster, progress, p, strict); err != nil {
			return err
		}
	}
	// The manager of before may need its rights until the new one is ready.
	if !i.wait && i.dryRun == dryRunNone {
		if runs, err := earlierRuns(ctx, cluster, p.objects); err != nil || runs {
			i.leaveStale(p)
			return err
		}
	}
	return i.removeStale(ctx, cluster, progress, p, false)
}

// awaitReady waits until the objects of a part do their work, and then writes its strict webhook configurations.
func (i *installer) awaitReady(ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, p part, strict []*unstructured.Unstructured) error {
	progress.Begin(p.name)
	err := apply.Await(ctx, i.timeout, progress.Tell, cluster.AllReady(p.objects))
	if err == nil {
		_, err = i.write(ctx, cluster, p.name, strict)
	}
	i.report.Step(p.name, "ready", "", err)
	if err != nil {
		return err
	}
	progress.End("ready")
	return nil
}

// stage applies one stage, and waits until it stands.
func (i *installer) stage(ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, name string, stage apply.Stage) (err error) {
	ended := ""
	defer func() { i.report.Step(name, stage.Name, ended, err) }()
	progress.Begin(name + " " + stage.Name)
	changed, err := i.write(ctx, cluster, name, stage.Objects)
	if err != nil {
		return err
	}
	if i.wait && i.dryRun == dryRunNone {
		if err := apply.Await(ctx, i.timeout, progress.Tell, check(cluster, stage)); err != nil {
			return err
		}
	}
	ended = result(changed, len(stage.Objects), i.dryRun)
	progress.End(ended)
	return nil
}

// check returns the condition that a stage must reach before the next one is begun.
func check(cluster *apply.Cluster, stage apply.Stage) apply.Check {
	switch stage.Name {
	case apply.CRDs:
		return cluster.AllServed(stage.Objects)
	case apply.Managers:
		return cluster.AllStarted(stage.Objects)
	}
	return func(context.Context) (bool, string, error) { return true, "", nil }
}

// printAll writes manifests for kubectl, in the order in which kustomize writes the files of a release.
func printAll(out io.Writer, parts []part) error {
	var all []*unstructured.Unstructured
	for _, p := range parts {
		all = append(all, p.objects...)
	}
	kind := func(object *unstructured.Unstructured) resid.Gvk {
		gvk := object.GroupVersionKind()
		return resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind)
	}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		switch {
		case kind(a).IsLessThan(kind(b)):
			return -1
		case kind(b).IsLessThan(kind(a)):
			return 1
		}
		return 0
	})
	for _, object := range all {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("write %s: %w", apply.Describe(object), err)
		}
		fmt.Fprintf(out, "---\n%s", text)
	}
	return nil
}
