package health

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// Finding is something wrong with an installation.
type Finding struct {
	// About is a feature, or "cluster".
	About string `json:"about"`
	// Trouble is the problem, Help the remedy.
	Trouble string `json:"trouble"`
	Help    string `json:"help,omitempty"`
	// Note means that nothing is wrong: it does not count for the exit code.
	Note bool `json:"note,omitempty"`
}

// isFault reports whether something must be done.
func isFault(finding Finding) bool { return !finding.Note }

// NewDoctorCommand returns "flotilla doctor".
func NewDoctorCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Find faults of the installation",
		Long: `Show faults of the installed operators and their remedies: managers, feature gates, webhooks, certificates, permissions,
versions, and kinds that another controller also manages. Webhooks are called with dry runs; the command only reads. The exit
code is 3 if there is a fault. A note is no fault.`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := apply.Connect(flags)
			if err != nil {
				return err
			}
			findings, seen, err := examine(command.Context(), cluster, clock.RealClock{})
			if err != nil {
				return err
			}
			if err := write(streams.Out, output, findings, tell(seen)); err != nil {
				return err
			}
			if slices.ContainsFunc(findings, isFault) {
				return cli.NoErrorf("")
			}
			return nil
		},
	}
	output.AddTo(command.Flags())
	return command
}

// surroundings are the facts that the doctor reports in addition to problems.
type surroundings struct {
	// installed counts operators.
	installed int
	// openKruise means that OpenKruise's manager is there.
	openKruise bool
	// takenOver has a line for each feature that was taken over.
	takenOver string
}

// tell prints the findings for people.
func tell(seen surroundings) func(io.Writer, []Finding) {
	return func(out io.Writer, findings []Finding) {
		switch {
		case slices.ContainsFunc(findings, isFault):
		case seen.installed == 0 && seen.openKruise:
			fmt.Fprintln(out, "no operator is installed, but OpenKruise is. To take over its kinds, begin with: flotilla takeover all --dry-run")
		case seen.installed == 0:
			fmt.Fprintln(out, "no operator is installed. To install all features: flotilla install all")
		default:
			fmt.Fprintln(out, "no problem found")
		}
		fmt.Fprint(out, seen.takenOver)
		for _, finding := range findings {
			about := finding.About
			if finding.Note {
				about = "note: " + about
			}
			fmt.Fprintf(out, "%s: %s\n", about, finding.Trouble)
			if finding.Help != "" {
				fmt.Fprintf(out, "  %s\n", finding.Help)
			}
		}
	}
}

// examine looks at the cluster and at every feature that is installed, and counts these. Findings are never nil.
func examine(ctx context.Context, cluster *apply.Cluster, clock clock.Clock) (findings []Finding, seen surroundings, err error) {
	findings = []Finding{}
	if found, err := cluster.Version(); err != nil {
		if found == "" {
			return nil, seen, err
		}
		findings = append(findings, Finding{About: "cluster", Trouble: err.Error()})
	}
	presence, err := openkruise.Look(ctx, cluster)
	if err != nil {
		return nil, seen, err
	}
	reports, err := observeAll(ctx, cluster, presence, clock)
	if err != nil {
		return nil, seen, err
	}
	foreign, err := configurations(ctx, cluster)
	if err != nil {
		return nil, seen, err
	}
	seen.openKruise = presence.There()
	for _, report := range reports {
		findings = append(findings, beside(report, presence, owners(report, foreign))...)
		findings = append(findings, changingHands(report, presence)...)
		if report.TakenOver != "" {
			seen.takenOver += report.Feature + ": " + report.TakenOver + "\n"
		}
		if !report.Installed {
			continue
		}
		seen.installed++
		findings = append(findings, faults(report)...)
		findings = append(findings, certificates(report, clock.Now())...)
		findings = append(findings, rights(report)...)
		findings = append(findings, gates(report)...)
		findings = append(findings, leftOut(report)...)
		idle, err := unprotecting(ctx, cluster, report)
		if err != nil {
			return nil, seen, err
		}
		findings = append(findings, idle...)
		if report.Healthy {
			findings = append(findings, reach(ctx, cluster, report)...)
		}
	}
	return append(findings, skew(reports)...), seen, nil
}

// changingHands finds a takeover that was cut off, and one that you have yet to finish: OpenKruise is gone.
func changingHands(report *Report, presence openkruise.Presence) []Finding {
	switch {
	case report.Takeover != "":
		return []Finding{{
			About:   report.Feature,
			Trouble: report.Takeover,
			Help:    report.handover.Help(),
		}}
	case report.TakenOver != "" && !presence.There() && report.handover.From == openkruise.Default():
		return []Finding{{
			About:   report.Feature,
			Trouble: "it was taken over from OpenKruise. OpenKruise is gone, but the takeover is not finished",
			Help:    "Finish the takeover: " + report.handover.Finish(),
		}}
	}
	return nil
}

// faults are objects that are missing or do not work. Those that lack a CA have one cause, and are shown together.
func faults(report *Report) []Finding {
	var findings []Finding
	var untrusted []string
	for _, fault := range report.Faults {
		if strings.HasSuffix(fault, " "+apply.NoCA) {
			untrusted = append(untrusted, fault)
			continue
		}
		help := "Install it again: flotilla install " + report.Feature
		name := podsOf(report, fault)
		switch {
		case report.Takeover != "":
			help = "" // an install would refuse; the finding about the takeover helps
		case strings.HasSuffix(fault, noLeader):
			help = leaderHelp(report.Feature)
		case name != "" && strings.Contains(fault, "forbidden"):
			help = "The creation of its pods is rejected: check quotas, LimitRanges, pod security labels and webhooks of namespace " + install.Namespace
		case name != "":
			help = "Check its pods: kubectl -n " + install.Namespace + " describe pods -l app.kubernetes.io/name=" + name
		}
		findings = append(findings, Finding{About: report.Feature, Trouble: fault, Help: help})
	}
	if len(untrusted) > 0 {
		findings = append(findings, Finding{
			About:   report.Feature,
			Trouble: summary(untrusted),
			Help: "The operator writes the CA. Find the cause in its log: kubectl -n " + install.Namespace +
				" logs deployment/" + report.Feature + "-manager",
		})
	}
	return findings
}

// podsOf returns the name in the label of the pods that a fault is about, empty if it is about none.
func podsOf(report *Report, fault string) string {
	for name, live := range report.live {
		if strings.HasPrefix(fault, name+" ") {
			labels, _, _ := unstructured.NestedStringMap(live.Object, "spec", "template", "metadata", "labels")
			return labels["app.kubernetes.io/name"]
		}
	}
	return ""
}

// rights finds roles and bindings that differ from the manifests.
func rights(report *Report) []Finding {
	var findings []Finding
	for _, wanted := range report.wanted {
		live, there := report.live[apply.Describe(wanted)]
		if !there || apply.StageOf(wanted) != apply.Rights {
			continue
		}
		for _, field := range []string{"rules", "subjects", "roleRef"} {
			if want, has := wanted.Object[field]; has && !covers(live.Object[field], want) {
				findings = append(findings, Finding{
					About:   report.Feature,
					Trouble: "field " + field + " of " + apply.Describe(wanted) + " differs from the manifests",
					Help:    "Show the difference: flotilla install " + report.Feature + " --diff",
				})
			}
		}
	}
	return findings
}

// covers compares values as they are written; the server adds fields to references of rights.
func covers(have, want any) bool {
	haves, isList := have.([]any)
	wants, wantsList := want.([]any)
	if isList && wantsList {
		for _, one := range wants {
			if !slices.ContainsFunc(haves, func(h any) bool { return covers(h, one) }) {
				return false
			}
		}
		return true
	}
	haveFields, isMap := have.(map[string]any)
	wantFields, wantsMap := want.(map[string]any)
	if isMap && wantsMap {
		for name, field := range wantFields {
			if !covers(haveFields[name], field) {
				return false
			}
		}
		return true
	}
	a, errA := json.Marshal(have)
	b, errB := json.Marshal(want)
	return errA == nil && errB == nil && string(a) == string(b)
}

// skew finds managers of different minor versions, and managers with another version than the manifests.
func skew(reports []*Report) []Finding {
	minors := map[string][]string{}
	for _, report := range reports {
		if v, err := version.ParseSemantic(report.Version); report.Installed && err == nil {
			minor := fmt.Sprintf("v%d.%d", v.Major(), v.Minor())
			minors[minor] = append(minors[minor], report.Feature)
		}
	}
	var findings []Finding
	if len(minors) > 1 {
		var parts []string
		for _, minor := range sortedKeys(minors) {
			parts = append(parts, minor+" ("+strings.Join(minors[minor], ", ")+")")
		}
		findings = append(findings, Finding{
			About:   "cluster",
			Trouble: "managers have different minor versions: " + strings.Join(parts, ", "),
			Help:    "They work together; upgrade the older ones when you can.",
			Note:    true,
		})
	}
	for _, report := range reports {
		if report.OutOfDate {
			findings = append(findings, Finding{
				About:   report.Feature,
				Trouble: "version " + report.Version + " is out of date",
				Help:    "Install " + report.Available + ": flotilla install " + report.Feature,
			})
		}
		if report.Newer {
			findings = append(findings, Finding{
				About:   report.Feature,
				Trouble: "version " + report.Version + " is newer than this command, which has " + report.Available,
				Help:    "Use the command of " + report.Version + ". This one would install older manifests.",
			})
		}
	}
	return findings
}

// reach calls the webhooks of a feature by a dry run of an object of each kind. Their answer does not matter.
func reach(ctx context.Context, cluster *apply.Cluster, report *Report) []Finding {
	var findings []Finding
	for _, crd := range report.wanted {
		if crd.GetKind() != "CustomResourceDefinition" {
			continue
		}
		resource := install.ResourceOf(crd)
		err := cluster.TryCreate(ctx, resource, probe(crd, resource))
		if err != nil && strings.Contains(err.Error(), "failed calling webhook") {
			findings = append(findings, Finding{
				About:   report.Feature,
				Trouble: "its webhooks cannot be reached: " + err.Error(),
				Help:    "The API server must reach port 9876 of the pods of Service " + install.Namespace + "/" + report.Feature + "-webhook.",
			})
			break
		}
	}
	return findings
}

// probe returns an object that webhooks are asked about.
func probe(crd *unstructured.Unstructured, resource schema.GroupVersionResource) *unstructured.Unstructured {
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	object.SetName("flotilla-doctor")
	if scope == "Namespaced" {
		object.SetNamespace("default")
	}
	return object
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
