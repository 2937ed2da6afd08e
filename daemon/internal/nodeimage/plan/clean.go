package plan

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// secretRecheck is how often references to secrets are checked; there is no event for a deleted secret.
const secretRecheck = 10 * time.Minute

// jobRecheck is when owners of which nothing is known are checked again.
const jobRecheck = 30 * time.Second

// clean returns the merge patch of spec.images that removes entries that are over; nil for an image removed as a whole.
func clean(s Snapshot, p *Plan) map[string]any {
	ended := completions(s.Image)
	changes := map[string]any{}
	for name := range s.Image.Spec.Images {
		image := s.Image.Spec.Images[name]
		tags, tagsChanged := cleanTags(s, p, name, image.Tags, ended)
		if len(tags) == 0 {
			changes[name] = nil
			continue
		}
		change := map[string]any{}
		if tagsChanged {
			change["tags"] = tags
		}
		if secrets := cleanSecrets(s, p, image.PullSecrets); len(secrets) != len(image.PullSecrets) {
			change["pullSecrets"] = secrets
		}
		if len(change) > 0 {
			changes[name] = change
		}
	}
	return changes
}

// completions returns the completion times of the rounds of pulling that have one.
func completions(image *v1beta1.NodeImage) map[tally.Key]time.Time {
	return timesOf(image, func(tag *v1beta1.ImageTagStatus) *metav1.Time { return tag.CompletionTime })
}

// startTimes returns the start times of the rounds of pulling that have one.
func startTimes(image *v1beta1.NodeImage) map[tally.Key]time.Time {
	return timesOf(image, func(tag *v1beta1.ImageTagStatus) *metav1.Time { return tag.StartTime })
}

func timesOf(image *v1beta1.NodeImage, of func(*v1beta1.ImageTagStatus) *metav1.Time) map[tally.Key]time.Time {
	times := map[tally.Key]time.Time{}
	for name := range image.Status.ImageStatuses {
		for i := range image.Status.ImageStatuses[name].Tags {
			tag := &image.Status.ImageStatuses[name].Tags[i]
			if at := of(tag); at != nil {
				times[tally.Key{Image: name, Tag: tag.Tag, Version: tag.Version}] = at.Time
			}
		}
	}
	return times
}

// cleanTags returns the tags that stay, and whether they differ from those that are there.
func cleanTags(s Snapshot, p *Plan, name string, tags []v1beta1.ImageTagSpec, ended map[tally.Key]time.Time) (kept []v1beta1.ImageTagSpec, changed bool) {
	for _, tag := range tags {
		if tag.CreatedAt == nil {
			continue
		}
		owners := livingOwners(s, p, tag.OwnerReferences)
		if len(owners) == 0 && len(tag.OwnerReferences) > 0 {
			continue
		}
		if len(owners) != len(tag.OwnerReferences) {
			tag.OwnerReferences, changed = owners, true
		}
		round := tally.Key{Image: name, Tag: tag.Tag, Version: tag.Version}
		if at, ok := ended[round]; ok {
			left, bounded := timeToLive(&tag, s.Now.Sub(seenAt(s.Seen.Ended, round, &tag, at, s.Now)))
			if bounded && left <= 0 {
				continue
			}
			wake(p, left)
		}
		kept = append(kept, tag)
	}
	return kept, changed || len(kept) != len(tags)
}

// seenAt returns the time of an event that a node has reported, by the manager's clock: when this process first saw it. A
// process that was started later has only the time of the node's clock, which may be any time: the result is then at least
// the time at which the tag was wanted, and at most now.
func seenAt(seen map[tally.Key]time.Time, round tally.Key, tag *v1beta1.ImageTagSpec, told, now time.Time) time.Time {
	if at, ok := seen[round]; ok {
		return at
	}
	if told.Before(tag.CreatedAt.Time) {
		told = tag.CreatedAt.Time
	}
	if told.After(now) {
		return now
	}
	return told
}

// timeToLive returns how long a tag is kept after its pull has ended; false if forever.
func timeToLive(tag *v1beta1.ImageTagSpec, ago time.Duration) (time.Duration, bool) {
	if tag.PullPolicy == nil || tag.PullPolicy.TTLSecondsAfterFinished == nil {
		return 0, false
	}
	return action.Seconds(*tag.PullPolicy.TTLSecondsAfterFinished) - ago, true
}

// livingOwners returns the owners without the ImagePullJobs that are known to be gone. Other kinds stay, and so does a
// job of which nothing is known.
func livingOwners(s Snapshot, p *Plan, owners []corev1.ObjectReference) []corev1.ObjectReference {
	return slices.DeleteFunc(slices.Clone(owners), func(owner corev1.ObjectReference) bool {
		job, ok := JobOf(owner)
		if !ok {
			return false
		}
		there, known := s.Jobs[job]
		if !known {
			p.RequeueWithin(jobRecheck)
		}
		return known && !there
	})
}

// JobOf returns the ImagePullJob that an owner is, in whichever version; false for another kind.
func JobOf(owner corev1.ObjectReference) (Job, bool) {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return Job{types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}, owner.UID},
		group == contract.AppsGroup && owner.Kind == contract.ImagePullJobKind
}

// cleanSecrets returns the references to secrets that are not gone. A reference with a mode leaves with its
// image.
func cleanSecrets(s Snapshot, p *Plan, secrets []v1beta1.SecretReference) []v1beta1.SecretReference {
	return slices.DeleteFunc(slices.Clone(secrets), func(secret v1beta1.SecretReference) bool {
		if secret.Mode != "" {
			return false
		}
		p.RequeueWithin(secretRecheck)
		there, known := s.Secrets[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}]
		return known && !there
	})
}

func wake(p *Plan, after time.Duration) {
	if after > 0 {
		p.RequeueWithin(max(after, minWake))
	}
}
