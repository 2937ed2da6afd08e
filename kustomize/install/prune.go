package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

const (
	// FeatureLabel has the name of the feature that an object is part of. Objects that several features share have none.
	FeatureLabel = "apps.kruise.io/feature"
	// nameLabel has the name of the whole that an object is part of.
	nameLabel = "app.kubernetes.io/name"
)

// sharedNames are the names in nameLabel of the objects that shared components add, once for all features.
func sharedNames() []string { return []string{"flotilla", "flotilla-agents"} }

// IsShared reports whether several features have an object.
func IsShared(object *unstructured.Unstructured) bool {
	return slices.Contains(sharedNames(), object.GetLabels()[nameLabel])
}

// mark labels each object of a feature with the feature.
func mark(objects []*unstructured.Unstructured, feature catalog.Feature) {
	for _, object := range objects {
		if IsShared(object) {
			continue
		}
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[FeatureLabel] = feature.Name
		object.SetLabels(labels)
	}
}

// Prunable returns the kinds of objects that go when the manifests no longer have them, in the order in which they go:
// webhooks first, so that no request waits for a manager that does not serve them. CRDs and namespaces are not among them,
// since objects of users go with these.
func Prunable() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, of := range []struct {
		group, version string
		kinds          []string
	}{
		{"admissionregistration.k8s.io", "v1", []string{
			"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy",
		}},
		{"apps", "v1", []string{"Deployment", "DaemonSet"}},
		{"policy", "v1", []string{"PodDisruptionBudget"}},
		{"", "v1", []string{"Service", "ConfigMap"}},
		{"networking.k8s.io", "v1", []string{"NetworkPolicy"}},
		{"flowcontrol.apiserver.k8s.io", "v1", []string{"FlowSchema", "PriorityLevelConfiguration"}},
		{"cert-manager.io", "v1", []string{"Certificate", "Issuer"}},
		{"monitoring.coreos.com", "v1", []string{"ServiceMonitor"}},
		{"rbac.authorization.k8s.io", "v1", []string{"ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role"}},
		{"", "v1", []string{"ServiceAccount"}},
	} {
		for _, kind := range of.kinds {
			kinds = append(kinds, schema.GroupVersionKind{Group: of.group, Version: of.version, Kind: kind})
		}
	}
	return kinds
}

// Stale returns the live objects that an earlier install of a feature applied and that are not wanted any more, in their
// order. Wanted has the objects that are installed now, of all features: an object that has moved to another feature stays.
func Stale(feature string, live, wanted []*unstructured.Unstructured) []*unstructured.Unstructured {
	keep := map[string]bool{}
	for _, object := range wanted {
		keep[identity(object)] = true
	}
	var stale []*unstructured.Unstructured
	for _, object := range live {
		if object.GetLabels()[FeatureLabel] == feature && !keep[identity(object)] && apply.Applied(object) &&
			slices.ContainsFunc(Prunable(), func(kind schema.GroupVersionKind) bool { return kind == object.GroupVersionKind() }) {
			stale = append(stale, object)
		}
	}
	return stale
}

// identity names an object whatever its version.
func identity(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().Group + " " + apply.Describe(object)
}

// findStale finds the objects that each part leaves behind, before anything is written.
func (i *installer) findStale(ctx context.Context, cluster *apply.Cluster, parts []part, wanted []*unstructured.Unstructured) error {
	if !i.prune {
		return nil
	}
	live, err := cluster.ListKinds(ctx, Prunable(), FeatureLabel)
	if err != nil {
		return fmt.Errorf("look for objects that are no longer needed (--prune=false keeps them): %w", err)
	}
	for k := range parts {
		parts[k].stale = Stale(parts[k].name, live, wanted)
	}
	return nil
}

// removeStale deletes the objects that a part leaves behind: webhooks, or all else.
func (i *installer) removeStale(ctx context.Context, cluster *apply.Cluster, progress *apply.Progress, p part, webhooks bool) error {
	var names []string
	for _, object := range p.stale {
		if (apply.StageOf(object) == apply.Webhooks) != webhooks {
			continue
		}
		if len(names) == 0 {
			progress.Begin(p.name + " leftovers")
		}
		names = append(names, apply.Describe(object))
		if i.dryRun != dryRunServer {
			if _, err := cluster.Delete(ctx, object); err != nil {
				i.did(p.name, cli.Refused, object, err.Error())
				return err
			}
		}
		i.did(p.name, cli.Removed, object, "")
	}
	switch {
	case len(names) == 0:
	case i.dryRun == dryRunServer:
		progress.End("would be deleted: " + strings.Join(names, ", "))
	default:
		progress.End("deleted: " + strings.Join(names, ", "))
	}
	return nil
}

// earlierRuns reports whether pods of a manager may be of an earlier install.
func earlierRuns(ctx context.Context, cluster *apply.Cluster, objects []*unstructured.Unstructured) (bool, error) {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		live, err := cluster.Get(ctx, object)
		if err != nil || live == nil {
			return false, err
		}
		pods, _, _ := unstructured.NestedInt64(live.Object, "status", "replicas")
		if ready, _ := apply.Ready(live); pods > 0 && !ready {
			return true, nil
		}
	}
	return false, nil
}

// leaveStale prints the objects that stay.
func (i *installer) leaveStale(p part) {
	var names []string
	for _, object := range p.stale {
		if apply.StageOf(object) != apply.Webhooks {
			names = append(names, apply.Describe(object))
		}
	}
	i.report.Leave(names...)
	if len(names) > 0 {
		fmt.Fprintf(i.streams.Out, "%s leftovers stay, because pods of the previous version may still run: %s; run the command again without --wait=false\n",
			p.name, strings.Join(names, ", "))
	}
}
