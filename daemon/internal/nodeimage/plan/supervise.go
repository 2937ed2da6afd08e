package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// supervise gives up pulls if no agent has reported their end in time, removes the states of tags that are not in the spec,
// and counts again.
func supervise(s Snapshot, p *Plan) {
	after := s.Image.DeepCopy()
	dropLeftovers(after)
	a := watchAgent(s)
	for _, name := range slices.Sorted(maps.Keys(after.Spec.Images)) {
		superviseImage(p, a, after, name)
	}
	tally.Count(after)
	p.Status = &after.Status
}

func superviseImage(p *Plan, a agent, after *v1beta1.NodeImage, name string) {
	states := after.Status.ImageStatuses[name].Tags
	at := make(map[string]int, len(states))
	for i := range states {
		at[states[i].Tag] = i
	}
	for _, tag := range after.Spec.Images[name].Tags {
		i, told := at[tag.Tag]
		var state *v1beta1.ImageTagStatus
		if told {
			state = &states[i]
		}
		limit, message := a.patience(name, &tag, state)
		switch left := limit.Sub(a.Now); {
		case message == "":
			continue
		case left > 0:
			wake(p, left)
			continue
		}
		if !told {
			states = append(states, v1beta1.ImageTagStatus{Tag: tag.Tag, Version: tag.Version})
			state = &states[len(states)-1]
		}
		state.Phase = v1beta1.ImageFailed
		state.Message = message
		state.CompletionTime = new(metav1.NewTime(a.Now))
		p.Failures = append(p.Failures, Failure{
			Image:   imageref.Ref{Name: name, Tag: tag.Tag},
			Message: message,
			Owners:  tag.OwnerReferences,
		})
	}
	if len(states) > 0 {
		setStates(&after.Status, name, states)
	}
}

func setStates(status *v1beta1.NodeImageStatus, image string, states []v1beta1.ImageTagStatus) {
	slices.SortFunc(states, func(a, b v1beta1.ImageTagStatus) int { return cmp.Compare(a.Tag, b.Tag) })
	if status.ImageStatuses == nil {
		status.ImageStatuses = map[string]v1beta1.ImageStatus{}
	}
	status.ImageStatuses[image] = v1beta1.ImageStatus{Tags: states}
}

// dropLeftovers removes the states of rounds that the spec does not ask for.
func dropLeftovers(object *v1beta1.NodeImage) {
	wanted := tally.Wanted(&object.Spec)
	for name, image := range object.Status.ImageStatuses {
		image.Tags = slices.DeleteFunc(image.Tags, func(tag v1beta1.ImageTagStatus) bool {
			return !wanted[tally.Key{Image: name, Tag: tag.Tag, Version: tag.Version}]
		})
		if len(image.Tags) == 0 {
			delete(object.Status.ImageStatuses, name)
		} else {
			object.Status.ImageStatuses[name] = image
		}
	}
}

// Notice returns the event about the failure, on the NodeImage and on the owners of the tag.
func (f Failure) Notice(node string) action.Notice {
	return action.Notice{
		Type:   corev1.EventTypeWarning,
		Reason: EventFailed,
		Note:   fmt.Sprintf("Failed to pull image %s on node %s for %s", f.Image, node, f.Message),
	}
}
