package inplace

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
)

// pending has the planned changes of the pod that are not written, and restarts under way; nil when there are none.
func pending(p record.Prior) *diff.Scope {
	if p.Grace == nil && len(p.Restarts) == 0 && (p.State == nil || !p.State.HasNext()) {
		return nil
	}
	s := diff.NewScope()
	maps.Copy(s.Restarts, sets.KeySet(p.Restarts))
	if p.State != nil {
		addChanges(s, p.State.Next())
	}
	if p.Grace != nil {
		addChanges(s, p.Grace.Changes())
		addKeys(s, p.Plain.Metadata)
	}
	return &s
}

func addChanges(s diff.Scope, ch record.Changes) {
	maps.Copy(s.Images, sets.KeySet(ch.Images))
	maps.Copy(s.Resources, sets.KeySet(ch.Resources))
	maps.Copy(s.Restarts, ch.Restarts)
	for _, m := range ch.Metadata {
		addKeys(s, m)
	}
}

func addKeys(s diff.Scope, m record.Metadata) {
	maps.Copy(s.Labels, sets.KeySet(m.Labels))
	maps.Copy(s.Annotations, sets.KeySet(m.Annotations))
}
