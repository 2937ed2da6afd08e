package health

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// NewStatusCommand returns "flotilla status".
func NewStatusCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	return reporter(&cobra.Command{
		Use:   "status",
		Short: "Show which operators are installed, healthy and out of date",
		Long:  "Show which operators are installed, healthy and out of date. The exit code is 3 if an installed operator is unhealthy.",
	}, flags, func(output cli.Output, reports []*Report) error {
		if err := write(streams.Out, output, reports, table); err != nil {
			return err
		}
		return ill(reports)
	})
}

// reporter completes a command that reports about all features.
func reporter(command *cobra.Command, flags genericclioptions.RESTClientGetter, tell func(output cli.Output, reports []*Report) error) *cobra.Command {
	var output cli.Output
	command.Args = cli.Arguments(cobra.NoArgs)
	command.RunE = func(command *cobra.Command, _ []string) error {
		cluster, err := apply.Connect(flags)
		if err != nil {
			return err
		}
		if err := cluster.Reach(); err != nil {
			return err
		}
		presence, err := lookIfAllowed(command.Context(), cluster)
		if err != nil {
			return err
		}
		reports, err := observeAll(command.Context(), cluster, presence, clock.RealClock{})
		if err != nil {
			return err
		}
		return tell(output, reports)
	}
	output.AddTo(command.Flags())
	return command
}

// write prints values for programs, or by a function for people.
func write[T any](out io.Writer, output cli.Output, values T, people func(io.Writer, T)) error {
	if output == "" {
		people(out, values)
		return nil
	}
	return output.Print(out, values)
}

// lookIfAllowed reads the objects of OpenKruise in the cluster. A user who may not read them sees only the features that
// have changed hands.
func lookIfAllowed(ctx context.Context, cluster *apply.Cluster) (openkruise.Presence, error) {
	presence, err := openkruise.Look(ctx, cluster)
	if apierrors.IsForbidden(err) {
		presence = openkruise.Presence{}
		presence.Handovers, err = openkruise.Handovers(ctx, cluster)
	}
	return presence, err
}

func observeAll(ctx context.Context, cluster *apply.Cluster, presence openkruise.Presence, clock clock.Clock) ([]*Report, error) {
	features, err := catalog.Features()
	if err != nil {
		return nil, err
	}
	var reports []*Report
	for _, feature := range features {
		report, err := Observe(ctx, cluster, feature, clock)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", feature.Name, err)
		}
		if handover, there := presence.Handovers[feature.Name]; there {
			report.handover = &handover
			report.Takeover = handover.Trouble()
			report.TakenOver = handover.State()
		}
		if !report.Installed && report.besideOpenKruise(presence) != "" {
			report.OpenKruise = "OpenKruise manages its kinds: " + openkruise.InsteadOf(feature.Name)
		}
		reports = append(reports, report)
	}
	return reports, nil
}

// ill is the answer no when an operator that is installed is not healthy, or a feature is between two hands.
func ill(reports []*Report) error {
	var names []string
	for _, report := range reports {
		if report.Installed && !report.Healthy || report.Takeover != "" {
			names = append(names, report.Feature)
		}
	}
	if len(names) > 0 {
		return cli.NoErrorf("unhealthy: %s; for details: flotilla doctor", strings.Join(names, ", "))
	}
	return nil
}

func table(out io.Writer, reports []*Report) {
	columns := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(columns, "FEATURE\tVERSION\tHEALTH\tMESSAGE")
	for _, report := range reports {
		version, health, message := "-", "not installed", ""
		if report.Installed {
			version, health = report.Version, "healthy"
			if !report.Healthy {
				health = "unhealthy"
				message = summary(report.Faults)
			} else if report.OutOfDate {
				message = "out of date: this command installs " + report.Available
			} else if report.Newer {
				message = "newer than this command, which has " + report.Available
			}
		}
		if message == "" {
			message = cmp.Or(report.TakenOver, report.OpenKruise)
		}
		if report.Takeover != "" {
			message = report.Takeover
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", report.Feature, version, health, message)
	}
	_ = columns.Flush() // an output error cannot be shown on the same output
}

func summary(faults []string) string {
	if len(faults) == 1 {
		return faults[0]
	}
	return fmt.Sprintf("%s, and %d more", faults[0], len(faults)-1)
}

// Versions are the versions of one feature.
type Versions struct {
	Feature   string `json:"feature"`
	Installed string `json:"installed,omitempty"`
	Available string `json:"available"`
	// Kinds are the kinds that the cluster serves, with their versions.
	Kinds map[string][]string `json:"kinds,omitempty"`
}

// NewVersionsCommand returns "flotilla versions".
func NewVersionsCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	return reporter(&cobra.Command{
		Use:   "versions",
		Short: "Show the versions of operators and of the kinds that the cluster serves",
	}, flags, func(output cli.Output, reports []*Report) error {
		var all []Versions
		for _, report := range reports {
			all = append(all, versionsOf(report))
		}
		return write(streams.Out, output, all, versionTable)
	})
}

func versionsOf(report *Report) Versions {
	versions := Versions{
		Feature:   report.Feature,
		Installed: report.Version,
		Available: report.Available,
		Kinds:     map[string][]string{},
	}
	for _, live := range report.live {
		if live.GetKind() != "CustomResourceDefinition" {
			continue
		}
		kind, _, _ := unstructured.NestedString(live.Object, "spec", "names", "kind")
		served, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
		for _, one := range served {
			if fields, ok := one.(map[string]any); ok && fields["served"] == true {
				name, _ := fields["name"].(string)
				versions.Kinds[kind] = append(versions.Kinds[kind], name)
			}
		}
	}
	return versions
}

func versionTable(out io.Writer, all []Versions) {
	columns := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(columns, "FEATURE\tINSTALLED\tAVAILABLE\tKINDS")
	for _, versions := range all {
		var kinds []string
		for _, kind := range sortedKeys(versions.Kinds) {
			kinds = append(kinds, kind+" "+strings.Join(versions.Kinds[kind], ","))
		}
		installed := versions.Installed
		if installed == "" {
			installed = "-"
		}
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", versions.Feature, installed, versions.Available, strings.Join(kinds, "; "))
	}
	_ = columns.Flush() // an output error cannot be shown on the same output
}
