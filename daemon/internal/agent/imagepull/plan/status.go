package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

const complete = 100 // percent: a runtime reports no other progress

// status returns the state of each tag of the spec. States of tags that are not in the spec are removed.
func (p *pass) status() *v1beta1.NodeImageStatus {
	after := &v1beta1.NodeImage{Spec: p.Image.Spec, Status: v1beta1.NodeImageStatus{FirstSyncStatus: p.firstSync()}}
	for i := range p.tags {
		t := &p.tags[i]
		if after.Status.ImageStatuses == nil {
			after.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		image := after.Status.ImageStatuses[t.Name]
		image.Tags = append(image.Tags, p.tagStatus(t))
		after.Status.ImageStatuses[t.Name] = image
	}
	tally.Count(after)
	return &after.Status
}

func (p *pass) tagStatus(t *tag) v1beta1.ImageTagStatus {
	if t.finished != nil {
		return *t.finished.DeepCopy()
	}
	state := v1beta1.ImageTagStatus{
		Tag:     t.Tag,
		Version: t.Version,
		Phase:   v1beta1.ImageWaiting,
		Message: p.obstacle(),
	}
	pull := p.pulls[t.ID]
	switch {
	case pull != nil && pull.State == Ended:
		p.completed(t, pull, &state)
	case p.started[t.ID] || pull != nil && pull.State == Running:
		state.Phase = v1beta1.ImagePulling
		state.StartTime = p.startTime(t)
		state.Message = ""
	}
	return state
}

// completed fills the state of a pull that has ended and adds it to the ended pulls.
func (p *pass) completed(t *tag, pull *Pull, state *v1beta1.ImageTagStatus) {
	state.StartTime = p.startTime(t)
	state.CompletionTime = pull.Result.At.DeepCopy()
	state.Message, state.ImageID = pull.Result.Failure, pull.Result.ImageID
	if state.Message == "" {
		state.Phase, state.Progress = v1beta1.ImageSucceeded, complete
	} else {
		state.Phase = v1beta1.ImageFailed
	}
	p.plan.Ended = append(p.plan.Ended, EndedPull{
		ID:     t.ID,
		Result: pull.Result,
		Took:   pull.Result.At.Sub(state.StartTime.Time),
		Owners: t.spec.OwnerReferences,
	})
}

// firstSync returns Succeeded from the first sync with a runtime on, and Failed while there is none.
func (p *pass) firstSync() *v1beta1.SyncStatus {
	want := v1beta1.SyncStatus{Status: v1beta1.SyncSucceeded, SyncAt: metav1.Time{Time: p.Now}}
	if p.NoRuntime != "" {
		want.Status, want.Message = v1beta1.SyncFailed, p.NoRuntime
	}
	if now := p.Image.Status.FirstSyncStatus; now != nil && now.Status == want.Status && now.Message == want.Message {
		return now.DeepCopy()
	}
	return &want
}
