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
	t := takeover{streams: streams, flags: flags, clock: clock.RealClock{}}
	var choices install.Choices
	command := &cobra.Command{
		Use:   "takeover FEATURE... | --finish [FEATURE...]",
		Short: "Take kinds over from OpenKruise, whose other kinds go on working",
		Long: `Take features over from OpenKruise, one after the other: the operator is started, OpenKruise's manager is made to leave
the kinds alone, the operator gets CRDs and webhooks, and the pods of these kinds are compared with what they were. If the
operator does not start, OpenKruise has lost nothing. No object of the kinds and no pod is written. OpenKruise's other
kinds go on working.

Objects stay stored in the version in which OpenKruise's CRDs store them. So --undo gives a feature back as long as OpenKruise is
there, with all that was written since.

--finish ends takeovers: it stores the objects in Flotilla's version and removes OpenKruise's manager, node agent and webhooks, and
the policy that refuses its account. CRDs and objects stay. It refuses while there are objects of kinds that OpenKruise looks after.
Without a feature it ends all takeovers; with features OpenKruise stays until the others are ended, too.

A run that was interrupted goes on when you repeat the command. Settings of the last run are remembered, as by
"flotilla install". "flotilla status" shows what has begun and not ended.

--dry-run shows what would change and what cannot be had, and writes nothing. A pod that changed is told with who did it, and does
not end the run; the exit code is 3 then.

"all" stands for every feature but daemon: OpenKruise's node agent and Flotilla's would both act on a node.`,
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
			if err = wholeCluster(t.settings); err != nil {
				return err
			}
			if t.back && t.final {
				return cli.MisuseErrorf("--undo gives features back, and --finish ends that this can be done: name one of them")
			}
			if t.dryRun && t.back {
				return cli.MisuseErrorf("--dry-run is about taking over: --undo removes what it shows")
			}
			t.namesManager = command.Flags().Changed("from-namespace") || command.Flags().Changed("from-account")
			return t.run(command.Context(), features)
		},
		ValidArgsFunction: complete,
	}
	set := command.Flags()
	set.BoolVar(&t.dryRun, "dry-run", false, "Show what would change and write nothing.")
	set.BoolVar(&t.back, "undo", false, "Give the features back to OpenKruise.")
	set.BoolVar(&t.final, "finish", false, "End takeovers: remove OpenKruise, after which nothing can be given back.")
	set.StringVar(&t.old.Namespace, "from-namespace", openkruise.Default().Namespace, "Namespace of OpenKruise's manager.")
	set.StringVar(&t.old.Account, "from-account", openkruise.Default().Account, "ServiceAccount of OpenKruise's manager.")
	choices.AddTo(set)
	set.BoolVar(&t.wait, "wait", true, "Wait until managers do their work.")
	set.DurationVar(&t.timeout, "timeout", patience, "How long to wait for each step.")
	set.DurationVar(&t.settle, "settle", settle, "How long the new operator works before pods are compared; how long API servers may take to notice a storage version.")
	return command
}

// selected returns the features that are named. Errors are misuse.
func selected(names []string) ([]catalog.Feature, error) {
	if slices.Contains(names, daemonFeature) {
		return nil, cli.MisuseErrorf("daemon cannot be taken over beside OpenKruise's node agent, both would act on a node: " +
			"remove OpenKruise when all its other kinds are taken over, then flotilla install daemon")
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
