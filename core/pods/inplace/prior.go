package inplace

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// prior is the update in the pod's annotations.
type prior struct {
	state *State
	grace *Grace
	plain plainChange // of the grace
	// restarts are those under way, as in State.
	restarts map[string]string
	err      error // why something is unreadable
}

func readPrior(c *action.PodChange) prior {
	var p prior
	var err error
	if p.state, err = readState(c); err != nil {
		p.state, p.err = nil, err
	}
	if p.state != nil && !isInService(c) {
		p.restarts = p.state.pendingRestarts(c.Pod)
	}
	if p.grace, err = readGrace(c); err != nil {
		p.grace, p.err = nil, err
	}
	if p.grace != nil {
		if p.plain, err = parsePlainChange(p.grace.MetadataPatch); err != nil {
			p.grace, p.err = nil, err
		}
	}
	return p
}

// unreadable reports whether the goal of the pod's update is unknown. It is known with a readable plan in grace.
func (p prior) unreadable() bool { return p.err != nil && p.grace == nil }

// pending has the planned changes of the pod that are not written, and restarts under way; nil when there are none.
func (p prior) pending() *scope {
	if p.grace == nil && len(p.restarts) == 0 && (p.state == nil || !p.state.hasNext()) {
		return nil
	}
	s := newScope()
	maps.Copy(s.restarts, sets.KeySet(p.restarts))
	if p.state != nil {
		addChanges(s, p.state.next())
	}
	if p.grace != nil {
		addChanges(s, p.grace.changes())
		addKeys(s, p.plain.Metadata)
	}
	return &s
}

func addChanges(s scope, ch changes) {
	maps.Copy(s.images, sets.KeySet(ch.images))
	maps.Copy(s.resources, sets.KeySet(ch.resources))
	maps.Copy(s.restarts, ch.restarts)
	for _, m := range ch.metadata {
		addKeys(s, m)
	}
}

func addKeys(s scope, m Metadata) {
	maps.Copy(s.labels, sets.KeySet(m.Labels))
	maps.Copy(s.annotations, sets.KeySet(m.Annotations))
}

func (s *State) next() changes {
	return changes{
		images: s.NextContainerImages, resources: s.NextContainerResources, metadata: s.NextContainerRefMetadata,
		restarts: sets.New(s.NextContainerRestarts...),
	}
}

func (s *State) hasNext() bool {
	return len(s.NextContainerImages)+len(s.NextContainerResources)+len(s.NextContainerRefMetadata)+len(s.NextContainerRestarts) > 0
}

func (g *Grace) changes() changes {
	return changes{
		images: g.ContainerImages, resources: g.ContainerResources, metadata: g.ContainerRefMetadata,
		restarts: sets.New(g.ContainerRestarts...),
	}
}

// nothingUnderWay reports, without reading the pod's annotations, that no update is under way. It applies to a pod with
// condition InPlaceUpdateReady True: the condition becomes False with the first write of an update that interrupts and
// True with its end. Updates that do not interrupt leave marks in the text, and so do updates of pods that serve as
// they are.
func nothingUnderWay(c *action.PodChange) bool {
	text := current(c, contract.InPlaceUpdateStateAnnotation, contract.LegacyInPlaceUpdateStateAnnotation)
	if current(c, contract.InPlaceUpdateGraceAnnotation, contract.LegacyInPlaceUpdateGraceAnnotation) != "" {
		return false
	}
	if text == "" {
		return !podstate.HeldByUpdate(c.Pod)
	}
	return isInService(c) && strings.HasPrefix(text, "{") && !strings.Contains(text, `"next`) && !strings.Contains(text, `"updateResources":true`) &&
		!strings.Contains(text, `"restarts`) && !strings.Contains(text, `"raisedLimits`)
}

// isInService reports whether the pod has readiness gate InPlaceUpdateReady with condition True.
func isInService(c *action.PodChange) bool {
	if !podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		return false
	}
	condition := c.Condition(contract.InPlaceUpdateReady)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// readPlanned is readPrior for a pod that may have a plan that is not written yet, or restarts under way, or may have
// been resized for another revision; for others it reads nothing.
func readPlanned(c *action.PodChange) prior {
	text := current(c, contract.InPlaceUpdateStateAnnotation, contract.LegacyInPlaceUpdateStateAnnotation)
	grace := current(c, contract.InPlaceUpdateGraceAnnotation, contract.LegacyInPlaceUpdateGraceAnnotation)
	if len(c.Pod.ManagedFields) == 0 && grace == "" && (text == "" || strings.HasPrefix(text, "{") && !strings.Contains(text, `"next`) && !strings.Contains(text, `"restarts`)) {
		return prior{}
	}
	return readPrior(c)
}
