package takeover

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/openkruise"
)

// admissionGroup is where policies and webhook configurations are.
const admissionGroup = "admissionregistration.k8s.io/v1"

// policy returns the policy, and its binding, by which an account cannot write objects of the kinds nor the objects that
// they own.
//
// The main resource of an object that belongs to one of the account's other kinds stays free, such as a CloneSet of a
// UnitedDeployment: that is how the other kind works.
func policy(feature, account string, kinds []Kind) []*unstructured.Unstructured {
	var names, crds, resources []string
	for _, kind := range kinds {
		names = append(names, quote(kind.Name))
		crds = append(crds, quote(kind.CRD()))
		resources = append(resources, kind.Resource, kind.Resource+"/*")
	}
	rules := []any{
		rule(kinds[0].Group, resources, "CREATE", "UPDATE", "DELETE"),
		rule("", []string{"pods", "pods/status", "pods/resize", "persistentvolumeclaims", "persistentvolumeclaims/status"},
			"CREATE", "UPDATE", "DELETE"),
		rule("apps", []string{"controllerrevisions"}, "CREATE", "UPDATE", "DELETE"),
		rule("batch", []string{"jobs"}, "CREATE", "UPDATE", "DELETE"),
	}
	if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Resource == "imagepulljobs" }) {
		// The account still works on image pulls that Flotilla's workloads ask for.
		rules = append(rules, rule(workloads, []string{"imagepulljobs"}, "CREATE"))
	}
	name := openkruise.RecordName(feature)
	return []*unstructured.Unstructured{
		labelled("ValidatingAdmissionPolicy", name, map[string]any{
			"failurePolicy":    "Fail",
			"matchConstraints": map[string]any{"resourceRules": rules},
			"matchConditions": []any{map[string]any{
				"name": "account", "expression": "request.userInfo.username == " + quote(account),
			}},
			"variables": []any{
				variable("owners", owners("object")+" + "+owners("oldObject")),
				variable("taken", fmt.Sprintf("(request.resource.resource + '.' + request.resource.group) in [%s]", strings.Join(crds, ", "))),
				variable("owned", fmt.Sprintf("variables.owners.exists(o, o.apiVersion.startsWith(%s) && o.kind in [%s])",
					quote(kinds[0].Group+"/"), strings.Join(names, ", "))),
				variable("another", fmt.Sprintf("(!has(request.subResource) || request.subResource == '') && variables.owners.exists(o, "+
					"has(o.controller) && o.controller && o.apiVersion.startsWith(%s) && !(o.kind in [%s]))", quote(workloads+"/"), strings.Join(names, ", "))),
			},
			"validations": []any{map[string]any{
				"expression": "variables.taken ? variables.another : !variables.owned",
				"message":    fmt.Sprintf("Flotilla manages this object: %s was taken over from %s", feature, account),
				"reason":     "Forbidden",
			}},
		}),
		labelled("ValidatingAdmissionPolicyBinding", name, map[string]any{
			"policyName": name, "validationActions": []any{"Deny"},
		}),
	}
}

// protection returns the policy, and its binding, which refuse every deletion of the CRDs of a feature: with them go all
// objects and their pods. A tool that removes OpenKruise may take its CRDs along.
func protection(feature string, kinds []Kind) []*unstructured.Unstructured {
	var crds []string
	for _, kind := range kinds {
		crds = append(crds, quote(kind.CRD()))
	}
	name := openkruise.ProtectionName(feature)
	return []*unstructured.Unstructured{
		labelled("ValidatingAdmissionPolicy", name, map[string]any{
			"failurePolicy": "Fail",
			"matchConstraints": map[string]any{"resourceRules": []any{
				rule("apiextensions.k8s.io", []string{"customresourcedefinitions"}, "DELETE"),
			}},
			"validations": []any{map[string]any{
				"expression": fmt.Sprintf("!(oldObject.metadata.name in [%s])", strings.Join(crds, ", ")),
				"message": fmt.Sprintf("Flotilla manages the objects of this CRD: %s was taken over from OpenKruise. Its deletion would delete all objects "+
					"and their pods. To delete them after OpenKruise is removed: flotilla uninstall %[1]s --delete-crds", feature),
				"reason": "Forbidden",
			}},
		}),
		labelled("ValidatingAdmissionPolicyBinding", name, map[string]any{
			"policyName": name, "validationActions": []any{"Deny"},
		}),
	}
}

// policies returns the policies that a handover adds to admission.
func policies(feature, account string, kinds []Kind) []*unstructured.Unstructured {
	return append(protection(feature, kinds), policy(feature, account, kinds)...)
}

// owners is the expression for the owner references of an object that may be absent.
func owners(object string) string {
	return fmt.Sprintf("(%[1]s == null || !has(%[1]s.metadata) || !has(%[1]s.metadata.ownerReferences) ? [] : %[1]s.metadata.ownerReferences)", object)
}

func variable(name, expression string) any {
	return map[string]any{"name": name, "expression": expression}
}

func rule(group string, resources []string, operations ...string) any {
	return map[string]any{
		"apiGroups":   []any{group},
		"apiVersions": []any{"*"},
		"resources":   anys(resources),
		"operations":  anys(operations),
	}
}

func labelled(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": admissionGroup,
		"kind":       kind,
		"spec":       spec,
	}}
	object.SetName(name)
	object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "flotilla", "app.kubernetes.io/part-of": "flotilla"})
	return object
}

func anys(texts []string) []any {
	var values []any
	for _, text := range texts {
		values = append(values, text)
	}
	return values
}

func quote(text string) string { return "'" + text + "'" }
