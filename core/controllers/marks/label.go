package marks

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Label is the key of a label that marks namespaces, with value "true".
type Label string

// admitted is the annotation with the time when an object was last admitted.
func (l Label) admitted() string { return string(l) + "-admitted" }

// IsOn reports whether a namespace is marked.
func (l Label) IsOn(ns *corev1.Namespace) bool { return ns.Labels[string(l)] == "true" }

// Admitted returns when an object of the namespace was last admitted; the zero time if that is not known.
func (l Label) Admitted(ns *corev1.Namespace) time.Time {
	at, err := time.Parse(time.RFC3339Nano, ns.Annotations[l.admitted()])
	if err != nil {
		return time.Time{}
	}
	return at
}

// metadata are a change of the label and the annotation; nil takes them away.
func (l Label) metadata(mark, admitted any) map[string]any {
	return map[string]any{"metadata": map[string]any{
		"labels": map[string]any{string(l): mark}, "annotations": map[string]any{l.admitted(): admitted},
	}}
}

// keep adds to a plan the action that gives a namespace its label while it has objects, or takes the label away when
// there is none and none was admitted for a while. An admission that the plan does not know of changes the namespace, so
// that the label stays.
func (l Label) keep(ns *corev1.Namespace, hasObjects bool, grace time.Duration, p action.Plan) action.Plan {
	_, labelled := ns.Labels[string(l)]
	_, noted := ns.Annotations[l.admitted()]
	change := action.Patch{Type: types.MergePatchType}
	switch left := l.Admitted(ns).Add(grace).Sub(p.Now); {
	case hasObjects && l.IsOn(ns), !hasObjects && !labelled && !noted:
		return p
	case hasObjects:
		change.AnyVersion = true
		change.Body = map[string]any{"metadata": map[string]any{"labels": map[string]any{string(l): "true"}}}
	case left > 0 && left <= grace+maxSkew:
		p.RequeueWithin(left)
		return p
	default:
		change.Body = l.metadata(nil, nil)
	}
	mark := action.Action{
		Verb:    action.PatchMetadata,
		Object:  ns,
		Reason:  "Mark",
		Patches: []action.Patch{change},
	}
	p.Add(action.Step{Name: "mark", Actions: []action.Action{mark}})
	return action.Admit(p)
}
