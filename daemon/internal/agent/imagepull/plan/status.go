package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

const complete = 100 // percent: a runtime tells no other progress

// status returns the state of each tag of the spec. States of tags that are not in the spec are removed.
func (w *world) status() *v1beta1.NodeImageStatus {
	after := &v1beta1.NodeImage{Spec: w.Image.Spec, Status: v1beta1.NodeImageStatus{FirstSyncStatus: w.firstSync()}}
	for i := range w.tags {
		t := &w.tags[i]
		if after.Status.ImageStatuses == nil {
			after.Status.ImageStatuses = map[string]v1beta1.ImageStatus{}
		}
		image := after.Status.ImageStatuses[t.Name]
		image.Tags = append(image.Tags, w.tagStatus(t))
		after.Status.ImageStatuses[t.Name] = image
	}
	tally.Count(after)
	return &after.Status
}

func (w *world) tagStatus(t *tag) v1beta1.ImageTagStatus {
	if t.finished != nil {
		return *t.finished.DeepCopy()
	}
	state := v1beta1.ImageTagStatus{Tag: t.Tag, Version: t.Version, Phase: v1beta1.ImageWaiting, Message: w.NoRuntime}
	p := w.pulls[t.ID]
	switch {
	case p != nil && p.State == Ended:
		w.end(t, p, &state)
	case w.begun[t.ID] || p != nil && p.State == Running:
		state.Phase, state.StartTime, state.Message = v1beta1.ImagePulling, w.startTime(t), ""
	}
	return state
}

// end fills the state of a pull that has ended and notes who is to be told.
func (w *world) end(t *tag, p *Pull, state *v1beta1.ImageTagStatus) {
	state.StartTime, state.CompletionTime = w.startTime(t), p.Result.At.DeepCopy()
	state.Message, state.ImageID = p.Result.Failure, p.Result.ImageID
	if state.Message == "" {
		state.Phase, state.Progress = v1beta1.ImageSucceeded, complete
	} else {
		state.Phase = v1beta1.ImageFailed
	}
	w.plan.Ended = append(w.plan.Ended, Ending{
		ID: t.ID, Result: p.Result, Took: p.Result.At.Sub(state.StartTime.Time), Owners: t.spec.OwnerReferences,
	})
}

// firstSync returns Succeeded from the first sync with a runtime on, and Failed while there is none.
func (w *world) firstSync() *v1beta1.SyncStatus {
	want := v1beta1.SyncStatus{Status: v1beta1.SyncSucceeded, SyncAt: metav1.Time{Time: w.Now}}
	if w.NoRuntime != "" {
		want.Status, want.Message = v1beta1.SyncFailed, w.NoRuntime
	}
	if now := w.Image.Status.FirstSyncStatus; now != nil && now.Status == want.Status && now.Message == want.Message {
		return now.DeepCopy()
	}
	return &want
}
