package openkruise

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// Presence has the objects of OpenKruise in a cluster.
type Presence struct {
	// Configurations are its webhook configurations, Deployments the Deployments of its manager.
	Configurations, Deployments []*unstructured.Unstructured
	// Handovers are the handovers of features, by name.
	Handovers map[string]Handover
}

// Look reads the objects of OpenKruise in the cluster, where its manifests install them.
func Look(ctx context.Context, cluster *apply.Cluster) (Presence, error) {
	var found Presence
	var err error
	for _, configuration := range Configurations() {
		live, err := cluster.Get(ctx, configuration)
		if err != nil {
			return found, err
		}
		if live != nil {
			found.Configurations = append(found.Configurations, live)
		}
	}
	if found.Deployments, err = Default().Deployments(ctx, cluster); err != nil {
		return found, err
	}
	found.Handovers, err = Handovers(ctx, cluster)
	return found, err
}

// There reports whether there is a manager, or webhooks of it.
func (p Presence) There() bool { return len(p.Configurations) > 0 || len(p.Deployments) > 0 }

// Owns returns how OpenKruise looks after the kinds of a feature, of which these CRDs are live; empty if it does not. It
// does not own a kind that has changed hands.
func (p Presence) Owns(feature string, crds []*unstructured.Unstructured) string {
	if _, taken := p.Handovers[feature]; taken {
		return ""
	}
	for _, configuration := range p.Configurations {
		if resource := anyRule(configuration, crds); resource != "" {
			return fmt.Sprintf("%s has rules for %s", apply.Describe(configuration), resource)
		}
	}
	if len(p.Deployments) > 0 && len(crds) > 0 {
		return fmt.Sprintf("%s runs, and %s exists", apply.Describe(p.Deployments[0]), apply.Describe(crds[0]))
	}
	return ""
}

// anyRule returns a resource of the CRDs that a webhook configuration names.
func anyRule(configuration *unstructured.Unstructured, crds []*unstructured.Unstructured) string {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(fields, "rules")
		for _, rule := range rules {
			rule, _ := rule.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			for _, crd := range crds {
				resource, group, _ := strings.Cut(crd.GetName(), ".")
				if slices.Contains(groups, group) && slices.Contains(resources, resource) {
					return crd.GetName()
				}
			}
		}
	}
	return ""
}

// Converter returns the Service that converts the kind of a CRD; empty for none.
func Converter(crd *unstructured.Unstructured) (namespace, name string) {
	path := []string{"spec", "conversion", "webhook", "clientConfig", "service"}
	namespace, _, _ = unstructured.NestedString(crd.Object, append(path, "namespace")...)
	name, _, _ = unstructured.NestedString(crd.Object, append(path, "name")...)
	return namespace, name
}

// Conflict returns why a feature must not be installed as it is, with the command that is right; empty if it may.
// Crds are its live CRDs; serving reports whether a Service exists.
func (p Presence) Conflict(feature string, crds []*unstructured.Unstructured, serving func(namespace, name string) bool) string {
	if handover, taken := p.Handovers[feature]; taken {
		if trouble := handover.Trouble(); trouble != "" {
			return feature + ": " + trouble + ". " + handover.Help()
		}
		return ""
	}
	if how := p.Owns(feature, crds); how != "" {
		return fmt.Sprintf("OpenKruise manages the kinds of %s: %s; %s", feature, how, InsteadOf(feature))
	}
	for _, crd := range crds {
		namespace, name := Converter(crd)
		if name == "" || namespace == catalog.Namespace && name == feature+"-webhook" || !serving(namespace, name) {
			continue
		}
		if name == feature+"-webhook" {
			return fmt.Sprintf("%s is installed in namespace %s: Service %s there converts %s. A cluster can have a feature only once: "+
				"upgrade it with the tool that installed it, or remove it there first", feature, namespace, name, crd.GetName())
		}
		return fmt.Sprintf("another operator manages %s: Service %s/%s converts it. Remove that operator first, or if it is "+
			"OpenKruise: %s", crd.GetName(), namespace, name, InsteadOf(feature))
	}
	return ""
}

// InsteadOf is the action that replaces an install next to OpenKruise.
func InsteadOf(feature string) string {
	if feature == "daemon" {
		return "take over its other kinds with flotilla takeover all, and remove the manager and node agent of OpenKruise first"
	}
	return "flotilla takeover " + feature
}

// LooksAfter reports whether OpenKruise alone looks after the kind of a CRD. NodeImages, ContainerRecreateRequests and
// NodePodProbes are out of account: the first two are of the node agent, which is replaced at the end, and its manager makes
// the first and the last for each node, even if they are not used.
func LooksAfter(crd *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	if group != "apps.kruise.io" && group != "policy.kruise.io" {
		return false
	}
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	if slices.Contains([]string{"nodeimages", "containerrecreaterequests", "nodepodprobes"}, plural) {
		return false
	}
	return crd.GetLabels()["app.kubernetes.io/part-of"] != "flotilla"
}
