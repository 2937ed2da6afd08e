package takeover

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// daemonFeature is not taken over: two agents on a node would both act.
const daemonFeature = "daemon"

// How long waits and the look at pods take by default.
const (
	patience = 3 * time.Minute
	settle   = 10 * time.Second
)

// NewCommand returns "flotilla takeover".
func NewCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	t := takeover{clock: clock.RealClock{}}
	var choices install.Choices
	var output cli.Output
	command := &cobra.Command{
		Use:   "takeover FEATURE... | --finish [FEATURE...]",
		Short: "Move kinds from OpenKruise to Flotilla, and back",
		Long: `Move features from OpenKruise to Flotilla, one after the other. For each feature, the command starts the operator, stops
OpenKruise's manager from writing these kinds, installs CRDs and webhooks, and compares the pods before and after. Objects and
pods stay unchanged. If the operator fails to start, OpenKruise keeps the feature. OpenKruise continues with its other kinds.
A takeover covers all namespaces.

Objects keep the storage version of OpenKruise's CRDs. So --undo can give a feature back with all later changes while
OpenKruise is installed.

--finish ends takeovers: it stores the objects in Flotilla's version, and removes OpenKruise's manager, node agent and webhooks,
and the admission policy against its ServiceAccount. CRDs and objects stay. The command refuses to run while objects of
other kinds of OpenKruise exist. Without a feature it ends all takeovers. With features, OpenKruise stays until the others
are finished, too.

To continue an interrupted run, repeat the command; "flotilla status" shows interrupted runs. Settings of the last run are
remembered, as in "flotilla install".

--dry-run shows changes and limitations without a write. If a pod changed during the takeover, the command shows the change and
its author, continues, and ends with exit code 3.

"all" means every feature except daemon: two node agents on a node would conflict.`,
		Example: `  flotilla takeover all --dry-run
  flotilla takeover cloneset --registry registry.example.com/team
  flotilla takeover cloneset --undo
  flotilla takeover --finish`,
		Args: cli.Arguments(func(command *cobra.Command, names []string) error {
			if t.final {
				return nil
			}
			return install.Features(command, names)
		}),
		RunE: func(command *cobra.Command, names []string) error {
			var features []catalog.Feature
			var err error
			if !t.final || len(names) > 0 && !slices.Contains(names, catalog.All) {
				features, err = selected(names)
			}
			if err != nil {
				return err
			}
			if t.settings, err = install.Read(features, choices); err != nil {
				return err
			}
			if t.back && t.final {
				return cli.MisuseErrorf("--undo and --finish cannot be used together")
			}
			if t.dryRun && t.back {
				return cli.MisuseErrorf("--dry-run cannot be used with --undo")
			}
			t.namesManager = command.Flags().Changed("from-namespace") || command.Flags().Changed("from-account")
			report := &cli.Report{Command: "takeover", DryRun: t.dryRun}
			return cli.Reporting(command.Context(), flags, streams, output, report, func(
				flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams, report *cli.Report,
			) error {
				t.flags, t.streams, t.report = flags, streams, report
				return t.run(command.Context(), features)
			})
		},
		ValidArgsFunction: complete,
	}
	set := command.Flags()
	set.BoolVar(&t.dryRun, "dry-run", false, "show the changes and limitations without a write")
	set.BoolVar(&t.back, "undo", false, "give the features back to OpenKruise")
	set.BoolVar(&t.final, "finish", false, "end takeovers and remove OpenKruise; afterwards --undo is rejected")
	set.StringVar(&t.old.Namespace, "from-namespace", openkruise.Default().Namespace, "namespace of OpenKruise's manager")
	set.StringVar(&t.old.Account, "from-account", openkruise.Default().Account, "ServiceAccount of OpenKruise's manager")
	choices.AddTo(set)
	output.AddTo(set)
	set.BoolVar(&t.wait, "wait", true, "wait until the operators are ready")
	set.DurationVar(&t.timeout, "timeout", patience, "time limit of each step")
	set.DurationVar(&t.settle, "settle", settle, "time before pods are compared, and for API servers to use another storage version")
	return command
}

// selected returns the features that are named. Errors are misuse.
func selected(names []string) ([]catalog.Feature, error) {
	if slices.Contains(names, daemonFeature) {
		return nil, cli.MisuseErrorf("daemon cannot be taken over while the node agent of OpenKruise runs, because both would act on a node. " +
			"Take over the other features, run flotilla takeover --finish, then flotilla install daemon")
	}
	features, err := catalog.Select(names...)
	if err != nil {
		return nil, cli.MisuseErrorf("%s", err)
	}
	return slices.DeleteFunc(features, func(f catalog.Feature) bool { return f.Name == daemonFeature }), nil
}

// complete offers the features that are not named yet.
func complete(_ *cobra.Command, named []string, _ string) ([]string, cobra.ShellCompDirective) {
	features, err := selected([]string{catalog.All})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	offered := []string{catalog.All}
	for _, feature := range features {
		if !slices.Contains(named, feature.Name) {
			offered = append(offered, feature.Name)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
