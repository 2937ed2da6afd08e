package openkruise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The labels and annotations by which tools know the objects that they manage.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	argoTracking  = "argocd.argoproj.io/tracking-id"
	argoInstance  = "argocd.argoproj.io/instance"
	instance      = "app.kubernetes.io/instance"
	fluxKustomize = "kustomize.toolkit.fluxcd.io/"
	fluxHelm      = "helm.toolkit.fluxcd.io/"
)

// Keepers returns the tools that manage the objects and would undo changes to them, with the remedy: one sentence for each,
// in order.
func Keepers(objects ...*unstructured.Unstructured) []string {
	var all []string
	for _, object := range objects {
		if keeper := keeperOf(object); keeper != "" && !slices.Contains(all, keeper) {
			all = append(all, keeper)
		}
	}
	slices.Sort(all)
	return all
}

// keeperOf returns who manages an object. A tool that applies again and again comes before Helm, which it may use.
func keeperOf(object *unstructured.Unstructured) string {
	labels := object.GetLabels()
	annotations := object.GetAnnotations()
	application, _, _ := strings.Cut(annotations[argoTracking], ":")
	application = cmp.Or(application, labels[argoInstance])
	if application == "" && appliedBy(object, "argocd-controller") {
		application = labels[instance]
	}
	if application != "" {
		return fmt.Sprintf("Application %s of Argo CD manages OpenKruise: a sync reverts the takeover, at once with self-heal. "+
			"Turn automated sync off first, and do not sync OpenKruise until the takeover is finished", application)
	}
	for prefix, kind := range map[string]string{fluxKustomize: "Kustomization", fluxHelm: "HelmRelease"} {
		if name := labels[prefix+"name"]; name != "" {
			return fmt.Sprintf("%s %s/%s of Flux manages OpenKruise: its next reconciliation reverts the takeover. Suspend it first: flux suspend %s -n %[2]s %[3]s",
				kind, labels[prefix+"namespace"], name, strings.ToLower(kind))
		}
	}
	if release := annotations[helmRelease]; release != "" {
		return fmt.Sprintf("Helm release %s/%s manages OpenKruise: its next upgrade reverts the takeover. Run the command again after it", annotations[helmNamespace], release)
	}
	return ""
}

func appliedBy(object *unstructured.Unstructured, manager string) bool {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager {
			return true
		}
	}
	return false
}
