package takeover

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// template is the annotation from which the old manager rebuilds the list of a webhook configuration at every pass.
const template = "template"

// Removed are the webhooks that a configuration loses, each with the rules that it loses and no others.
type Removed struct {
	List     []any `json:"list,omitempty"`
	Template []any `json:"template,omitempty"`
}

// Empty reports whether nothing is lost.
func (r Removed) Empty() bool { return len(r.List) == 0 && len(r.Template) == 0 }

// Names are the names of the webhooks that lose rules.
func (r Removed) Names() []string {
	var names []string
	for _, webhook := range slices.Concat(r.List, r.Template) {
		fields, _ := webhook.(map[string]any)
		if name, _ := fields["name"].(string); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// leave returns a webhook configuration without its rules for the kinds, in the list and in the template, and the removed
// rules. Rules for everything ("*") stay: they name no kind.
func leave(configuration *unstructured.Unstructured, kinds []Kind) (*unstructured.Unstructured, Removed, error) {
	var removed Removed
	next, err := rewrite(configuration, func(list, templated []any) (a, b []any) {
		list, removed.List = divide(list, kinds)
		templated, removed.Template = divide(templated, kinds)
		return list, templated
	})
	return next, removed, err
}

// giveBack is the opposite of leave. A rule that is there already is not added again.
func giveBack(configuration *unstructured.Unstructured, removed Removed) (*unstructured.Unstructured, error) {
	return rewrite(configuration, func(list, templated []any) (a, b []any) {
		return join(list, removed.List), join(templated, removed.Template)
	})
}

// rewrite returns a configuration with a changed list and template. A configuration without a template keeps having none:
// its manager writes it from the list.
func rewrite(
	configuration *unstructured.Unstructured, change func(list, templated []any) (a, b []any),
) (*unstructured.Unstructured, error) {
	next := configuration.DeepCopy()
	list, _, err := unstructured.NestedSlice(next.Object, "webhooks")
	if err != nil {
		return nil, fmt.Errorf("read the webhooks of %s: %w", next.GetName(), err)
	}
	annotations := next.GetAnnotations()
	text, has := annotations[template]
	var templated []any
	if has {
		if err := json.Unmarshal([]byte(text), &templated); err != nil {
			return nil, fmt.Errorf("read annotation %s of %s: %w", template, next.GetName(), err)
		}
	}
	list, templated = change(list, templated)
	if err := unstructured.SetNestedSlice(next.Object, list, "webhooks"); err != nil {
		return nil, fmt.Errorf("write the webhooks of %s: %w", next.GetName(), err)
	}
	if has {
		encoded, err := json.Marshal(templated)
		if err != nil {
			return nil, fmt.Errorf("write annotation %s of %s: %w", template, next.GetName(), err)
		}
		annotations[template] = string(encoded)
		next.SetAnnotations(annotations)
	}
	return next, nil
}

// divide splits webhooks by their rules: those that do not name the kinds, and those that do.
func divide(webhooks []any, kinds []Kind) (kept, removed []any) {
	kept = []any{} // encoded as a list even if nothing is left
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			kept = append(kept, webhook)
			continue
		}
		rules, _, _ := unstructured.NestedSlice(fields, "rules")
		var others, theirs []any
		for _, rule := range rules {
			stays, leaves := divideRule(rule, kinds)
			others = append(others, stays...)
			theirs = append(theirs, leaves...)
		}
		if len(theirs) == 0 {
			kept = append(kept, webhook)
			continue
		}
		if len(others) > 0 {
			kept = append(kept, with(fields, "rules", others))
		}
		removed = append(removed, with(fields, "rules", theirs))
	}
	return kept, removed
}

// divideRule splits the pairs of groups and resources of a rule.
func divideRule(rule any, kinds []Kind) (stays, leaves []any) {
	fields, ok := rule.(map[string]any)
	if !ok {
		return []any{rule}, nil
	}
	groups, _, _ := unstructured.NestedSlice(fields, "apiGroups")
	resources, _, _ := unstructured.NestedSlice(fields, "resources")
	var untouched []any
	for _, group := range groups {
		var others, theirs []any
		for _, resource := range resources {
			g, _ := group.(string)
			r, _ := resource.(string)
			if among(kinds, g, r) {
				theirs = append(theirs, resource)
			} else {
				others = append(others, resource)
			}
		}
		if len(theirs) == 0 {
			untouched = append(untouched, group)
			continue
		}
		leaves = append(leaves, with(with(fields, "apiGroups", []any{group}), "resources", theirs))
		if len(others) > 0 {
			stays = append(stays, with(with(fields, "apiGroups", []any{group}), "resources", others))
		}
	}
	if len(untouched) > 0 || len(groups) == 0 {
		stays = append(stays, with(fields, "apiGroups", untouched))
	}
	return stays, leaves
}

// with returns a copy of fields of which one is set.
func with(fields map[string]any, name string, value []any) map[string]any {
	copied := maps.Clone(fields)
	copied[name] = value
	return copied
}

// join adds webhooks to a list: rules to the webhook of that name if there is one.
func join(webhooks, added []any) []any {
	joined := slices.Clone(webhooks)
	for _, webhook := range added {
		fields, ok := webhook.(map[string]any)
		if !ok {
			continue
		}
		i := slices.IndexFunc(joined, func(have any) bool {
			other, ok := have.(map[string]any)
			return ok && other["name"] == fields["name"]
		})
		if i < 0 {
			joined = append(joined, webhook)
			continue
		}
		there, _ := joined[i].(map[string]any)
		rules, _ := there["rules"].([]any)
		more, _ := fields["rules"].([]any)
		for _, rule := range more {
			if !slices.ContainsFunc(rules, func(have any) bool { return reflect.DeepEqual(have, rule) }) {
				rules = append(slices.Clip(rules), rule)
			}
		}
		joined[i] = with(there, "rules", rules)
	}
	return joined
}
