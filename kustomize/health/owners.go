package health

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// configurations returns all webhook configurations of the cluster.
func configurations(ctx context.Context, cluster *apply.Cluster) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, name := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: name}
		found, err := cluster.List(ctx, resource, "", "")
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// owners finds others that look after the kinds of a feature: webhooks for them that are not the feature's, and CRDs that
// another Service converts. Two controllers of one kind undo each other's work.
func owners(report *Report, configurations []unstructured.Unstructured) []Finding {
	var findings []Finding
	for _, wanted := range report.wanted {
		if wanted.GetKind() != "CustomResourceDefinition" {
			continue
		}
		live, there := report.live[apply.Describe(wanted)]
		if !there || !report.Installed {
			continue
		}
		resource := install.ResourceOf(wanted)
		own := report.Feature + "-webhook"
		for _, configuration := range configurations {
			if service := foreignService(configuration, resource, own); service != "" {
				findings = append(findings, second(report, resource, fmt.Sprintf("%s %s sends them to Service %s",
					configuration.GetKind(), configuration.GetName(), service)))
			}
		}
		service, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name")
		if service != "" && service != own {
			findings = append(findings, second(report, resource, "their CRD is converted by Service "+service))
		}
	}
	return findings
}

// beside adds that OpenKruise looks after the kinds of an operator that is installed, and the remedy.
func beside(report *Report, presence openkruise.Presence, findings []Finding) []Finding {
	how := report.besideOpenKruise(presence)
	if how == "" || !report.Installed {
		return findings
	}
	if len(findings) == 0 {
		findings = []Finding{{About: report.Feature, Trouble: "OpenKruise also manages its kinds: " + how}}
	}
	for i := range findings {
		findings[i].Help = "Two controllers revert the changes of each other. Take over the kinds: flotilla takeover " + report.Feature
	}
	return findings
}

func second(report *Report, resource schema.GroupVersionResource, how string) Finding {
	return Finding{
		About:   report.Feature,
		Trouble: fmt.Sprintf("another controller also manages %s: %s", resource.GroupResource(), how),
		Help:    "A kind must have one controller: remove the other one, or exclude this kind from it.",
	}
}

// foreignService returns the Service of another operator to which a configuration sends objects of a resource. Webhooks for
// whole groups, such as the webhooks of policy engines, are no owners.
func foreignService(configuration unstructured.Unstructured, resource schema.GroupVersionResource, own string) string {
	webhooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			continue
		}
		service, _, _ := unstructured.NestedString(fields, "clientConfig", "service", "name")
		if service == "" || service == own {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(fields, "rules")
		for _, rule := range rules {
			rule, ok := rule.(map[string]any)
			if !ok {
				continue
			}
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			if slices.Contains(groups, resource.Group) && slices.Contains(resources, resource.Resource) {
				return service
			}
		}
	}
	return ""
}
