package takeover

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// World has the objects of the cluster before a feature changes hands.
type World struct {
	// Account is the user that the old manager is, such as "system:serviceaccount:kruise-system:kruise-manager".
	Account string
	// Configurations are the old manager's webhook configurations, Managers its Deployments.
	Configurations, Managers []*unstructured.Unstructured
	// CRDs are the definitions that exist and Policies the policies, by name.
	CRDs, Policies map[string]*unstructured.Unstructured
	// Idle are budgets that will protect no pod, and the remedies.
	Idle []string
	// Objects count the objects of a kind, Pods the pods that these own, by name of the CRD.
	Objects, Pods map[string]int
}

// Plan has the changes that are made when a feature changes hands.
type Plan struct {
	Feature string
	Kinds   []KindPlan
	// Changes concern the feature as a whole, Limits are the restrictions after it.
	Changes, Limits []string
}

// KindPlan has the changes for a kind.
type KindPlan struct {
	Kind
	Objects, Pods int
	Changes       []string
}

// planOf returns the plan for a feature with these manifests.
func planOf(feature string, manifests []*unstructured.Unstructured, world World) (Plan, error) {
	plan := Plan{Feature: feature}
	for _, object := range manifests {
		if object.GetKind() != crdKind {
			continue
		}
		kind := kindsOf([]*unstructured.Unstructured{object})[0]
		changes, err := changesOf(kind, object, world)
		if err != nil {
			return plan, err
		}
		plan.Kinds = append(plan.Kinds, KindPlan{
			Kind:    kind,
			Objects: world.Objects[kind.CRD()],
			Pods:    world.Pods[kind.CRD()],
			Changes: changes,
		})
	}
	if _, there := world.Policies[openkruise.RecordName(feature)]; !there {
		plan.Changes = append(plan.Changes, fmt.Sprintf("ValidatingAdmissionPolicy %s: new; rejects writes of %s to these kinds and to objects that they own",
			openkruise.RecordName(feature), world.Account))
	}
	if _, there := world.Policies[openkruise.ProtectionName(feature)]; !there {
		plan.Changes = append(plan.Changes, fmt.Sprintf("ValidatingAdmissionPolicy %s: new; rejects the deletion of these CRDs, which would delete all objects",
			openkruise.ProtectionName(feature)))
	}
	for _, manager := range world.Managers {
		if _, gates := withGates(manager, gatesOf(feature), false); len(gates) > 0 {
			plan.Changes = append(plan.Changes, fmt.Sprintf("%s: restarts, with feature gates off: %s", apply.Describe(manager), strings.Join(gates, ", ")))
		}
	}
	plan.Changes = append(plan.Changes, fmt.Sprintf("flotilla install %s: permissions, manager and webhooks in namespace %s", feature, install.Namespace))
	plan.Limits = slices.Concat(world.Idle, limits(feature, world), keepers(world))
	return plan, nil
}

func changesOf(kind Kind, crd *unstructured.Unstructured, world World) ([]string, error) {
	var changes []string
	for _, configuration := range world.Configurations {
		_, removed, err := leave(configuration, []Kind{kind})
		if err != nil {
			return nil, err
		}
		if !removed.Empty() {
			changes = append(changes, fmt.Sprintf("%s: loses %s", apply.Describe(configuration), strings.Join(removed.Names(), ", ")))
		}
	}
	live, there := world.CRDs[kind.CRD()]
	if !there {
		return append(changes, crdKind+" "+kind.CRD()+": new"), nil
	}
	if !apply.Guarded(live) {
		changes = append(changes, fmt.Sprintf("%s: gets the unserved version %q first, so that the old manager skips it",
			apply.Describe(live), apply.GuardVersion))
	}
	if was, becomes := converter(live), converter(crd); was != becomes {
		changes = append(changes, fmt.Sprintf("%s: converted by %s (before: %s)", apply.Describe(live), becomes, was))
	}
	if stored := apply.StorageVersion(live); stored != kind.Version && apply.HasVersion(crd, stored) {
		changes = append(changes, fmt.Sprintf("%s: stores objects as %s as before, until flotilla takeover --finish", apply.Describe(live), stored))
	}
	return changes, nil
}

// converter names who converts objects of a CRD.
func converter(crd *unstructured.Unstructured) string {
	service, _, _ := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service")
	if service == nil {
		return "none"
	}
	return fmt.Sprintf("Service %v/%v", service["namespace"], service["name"])
}

// nodeImagesCRD is the definition of the kind by which jobs ask node agents.
const nodeImagesCRD = "nodeimages.apps.kruise.io"

// limits returns the restrictions after a takeover.
func limits(feature string, world World) []string {
	var lines []string
	if feature != "budget" && feature != "spread" {
		lines = append(lines, "SidecarSet, PodProbeMarker and ContainerRecreateRequest of OpenKruise can no longer write to running pods of these "+
			"kinds; sidecars are still injected into new pods")
	}
	if live := world.CRDs[nodeImagesCRD]; feature == "jobs" && (live == nil || !apply.Serves(live, "v1beta1")) {
		lines = append(lines, "ImagePullJobs pull no image until feature daemon is installed, because the cluster does not serve NodeImages in v1beta1. "+
			"Run flotilla takeover --finish, then flotilla install daemon")
	}
	lines = append(lines,
		"OpenKruise's manager tries these writes again and logs each rejection",
		"requests in other versions than the stored one fail for some seconds while the operator starts")
	return lines
}

// keepers returns the tools that undo a takeover.
func keepers(world World) []string {
	objects := slices.Concat(world.Managers, world.Configurations)
	for _, name := range slices.Sorted(maps.Keys(world.CRDs)) {
		objects = append(objects, world.CRDs[name])
	}
	if found := openkruise.Keepers(objects...); len(found) > 0 {
		return found
	}
	return []string{"a tool that applies the manifests of OpenKruise again, such as Helm, reverts the takeover. Run the command again after it"}
}

// print shows people the changes.
func (p Plan) print(out io.Writer) {
	fmt.Fprintln(out, p.Feature)
	for _, kind := range p.Kinds {
		fmt.Fprintf(out, "  %s: %s, %s\n", kind.Name, apply.Count(kind.Objects, "object", "objects"), apply.Count(kind.Pods, "pod", "pods"))
		for _, change := range kind.Changes {
			fmt.Fprintln(out, "    "+change)
		}
		fmt.Fprintln(out, "    no change to objects and pods")
	}
	for _, change := range p.Changes {
		fmt.Fprintln(out, "  "+change)
	}
	fmt.Fprintln(out, "  limitations:")
	for _, limit := range p.Limits {
		fmt.Fprintln(out, "    "+limit)
	}
}

// report reports the limitations, and in a dry run the changes.
func (p Plan) report(report *cli.Report, dryRun bool) {
	for _, limit := range p.Limits {
		report.Warn(p.Feature + ": " + limit)
	}
	if !dryRun {
		return
	}
	for _, kind := range p.Kinds {
		for _, change := range kind.Changes {
			report.Plan(p.Feature, change)
		}
	}
	for _, change := range p.Changes {
		report.Plan(p.Feature, change)
	}
}
