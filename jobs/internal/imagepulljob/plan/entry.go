package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

const (
	// minDeadline bounds the pulls of a job that never completes.
	minDeadline = 1800
	// longestPause is how many seconds a node waits at most between two attempts, and slack how many it may wait for its
	// turn.
	longestPause, slack = 30, 600
	// shortestTTL and renewal are how many seconds a tag stays at least, and how many before its time is over an unfinished
	// job prolongs that.
	shortestTTL, renewal = 120, 60
	// keepNever is how long the tags of such a job stay, keepSpread by how much that differs from node to node.
	keepNever, keepSpread = 86400, 600
	// spread is by how many seconds the tags of other jobs differ, so that nodes do not drop them all at once.
	spread = 300
	// longestTTL is a limit of the field.
	longestTTL = 1<<31 - 1 - spread
)

// pullPolicy returns what bounds the pulls of the job, without a spread over the nodes.
func (p *pass) pullPolicy() nodeimage.ImageTagPullPolicy {
	timeout, backoff := int32(v1beta1.DefaultPullTimeoutSeconds), int32(v1beta1.DefaultPullBackoffLimit)
	if own := p.Job.Spec.PullPolicy; own != nil {
		timeout, backoff = valueOr(own.TimeoutSeconds, timeout), valueOr(own.BackoffLimit, backoff)
	}
	policy := nodeimage.ImageTagPullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &backoff}
	if p.policy.Type == v1beta1.CompletionNever {
		policy.ActiveDeadlineSeconds = new(max(minDeadline, int64(timeout)*(int64(backoff)+1)))
		policy.TTLSecondsAfterFinished = new(int32(keepNever))
		return policy
	}
	policy.ActiveDeadlineSeconds = p.policy.ActiveDeadlineSeconds
	if policy.ActiveDeadlineSeconds == nil { // or else a node that dies while it pulls would hold its place for ever
		policy.ActiveDeadlineSeconds = new(int64(timeout)*(int64(backoff)+1) + longestPause*int64(backoff) + slack)
	}
	keep := int64(timeout) * int64(backoff)
	switch {
	case p.policy.TTLSecondsAfterFinished != nil:
		keep = int64(*p.policy.TTLSecondsAfterFinished)
	case p.policy.ActiveDeadlineSeconds != nil:
		keep = *p.policy.ActiveDeadlineSeconds
	}
	keep += int64(p.TTL / time.Second)
	// The first nodes must not drop the tag before the last ones have pulled: the job would begin there again. Where that
	// takes longer the job prolongs the time.
	if at := p.parallelism(); at > 0 {
		keep += int64(timeout) * int64(max(0, len(p.Targets)-1)/at)
	}
	policy.TTLSecondsAfterFinished = new(int32(min(max(keep, shortestTTL), longestTTL)))
	return policy
}

func valueOr[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// spreadOver returns a number below n that is always the same for a job on a node.
func spreadOver(n uint32, job types.UID, node string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(job) + "/" + node)) // the hash never returns an error
	return int32(h.Sum32() % n)
}

// ttl returns how long the tag stays on a node.
func (t *tally) ttl(job *v1beta1.ImagePullJob, node string) *int32 {
	base := *t.policy.TTLSecondsAfterFinished
	if job.Spec.CompletionPolicy.Type == v1beta1.CompletionNever {
		return new(base - keepSpread + spreadOver(2*keepSpread, t.uid, node))
	}
	return new(base + spreadOver(spread, t.uid, node))
}

// merged returns the entry of the image with what the job wants. The tag must be there.
func (t *tally) merged(image *nodeimage.ImageSpec, tag *nodeimage.ImageTagSpec) nodeimage.ImageSpec {
	next := *image
	next.Tags = slices.Clone(image.Tags)
	alone := len(tag.OwnerReferences) == 0 || len(tag.OwnerReferences) == 1 && t.owns(tag)
	if alone && len(image.Tags) == 1 || !t.owns(tag) {
		next.SandboxConfig = t.sandbox()
	}
	next.PullSecrets = slices.Clone(image.PullSecrets)
	for _, secret := range t.secrets {
		if !slices.ContainsFunc(next.PullSecrets, func(s nodeimage.SecretReference) bool {
			return s.Namespace == secret.Namespace && s.Name == secret.Name
		}) {
			next.PullSecrets = append(next.PullSecrets, secret)
		}
	}
	at := find(next.Tags, t.ref.Tag)
	if alone || !t.owns(tag) {
		at.ImagePullPolicy = nodeimage.PullIfNotPresent
		if t.template.ImagePullPolicy != "" {
			at.ImagePullPolicy = nodeimage.ImagePullPolicy(t.template.ImagePullPolicy)
		}
	}
	policy := t.policy
	if !alone && at.PullPolicy != nil {
		policy = t.largest(at.PullPolicy)
	}
	at.PullPolicy = &policy
	return next
}

// largest returns the limits that suit both the job and the others that want the tag.
func (t *tally) largest(others *nodeimage.ImageTagPullPolicy) nodeimage.ImageTagPullPolicy {
	both := nodeimage.ImageTagPullPolicy{
		TimeoutSeconds: larger(t.policy.TimeoutSeconds, others.TimeoutSeconds),
		BackoffLimit:   larger(t.policy.BackoffLimit, others.BackoffLimit),
	}
	if t.policy.ActiveDeadlineSeconds != nil && others.ActiveDeadlineSeconds != nil { // absent means none
		both.ActiveDeadlineSeconds = larger(t.policy.ActiveDeadlineSeconds, others.ActiveDeadlineSeconds)
	}
	return both
}

func larger[T cmp.Ordered](a, b *T) *T {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func (t *tally) sandbox() *nodeimage.SandboxConfig {
	if t.template.SandboxConfig == nil {
		return nil
	}
	return &nodeimage.SandboxConfig{Labels: t.template.SandboxConfig.Labels, Annotations: t.template.SandboxConfig.Annotations}
}

// lacksRoom reports whether the NodeImage has no room for another image, or the image none for another tag.
func (t *tally) lacksRoom(image *nodeimage.NodeImage) bool {
	entry, there := image.Spec.Images[t.ref.Name]
	if !there {
		return len(image.Spec.Images) >= nodeimage.MaxImagesPerNode
	}
	return find(entry.Tags, t.ref.Tag) == nil && len(entry.Tags) >= nodeimage.MaxTagsPerImage
}

// leftovers reports whether the job owns tags of other images, from before its image changed.
func (t *tally) leftovers(image *nodeimage.NodeImage) bool {
	for name := range image.Spec.Images {
		for i := range image.Spec.Images[name].Tags {
			tag := &image.Spec.Images[name].Tags[i]
			if (name != t.ref.Name || tag.Tag != t.ref.Tag) && t.owns(tag) {
				return true
			}
		}
	}
	return false
}

// write returns the one write of a pass to a NodeImage: without the tags that the job owned and does not want any more,
// which on a node that is no target are all, and with a new round of its tag if the node is to pull.
func (p *pass) write(t *tally, image *nodeimage.NodeImage, pull, target bool, place int) action.Action {
	images := maps.Clone(image.Spec.Images)
	if images == nil {
		images = map[string]nodeimage.ImageSpec{}
	}
	message := "the job does not want it here any more"
	if pull {
		message = fmt.Sprintf("node %d of %d", place+1, len(p.Targets))
		images[t.ref.Name] = p.request(t, image)
	}
	for name := range images {
		spec := images[name]
		spec.Tags = t.withoutOwn(spec.Tags, func(tag string) bool { return target && name == t.ref.Name && tag == t.ref.Tag })
		images[name] = spec
		if len(spec.Tags) == 0 {
			delete(images, name)
		}
	}
	reason := "Pull"
	if !pull {
		reason = "Abandon"
	}
	return patchImages(image, images, reason, t.ref.String()+": "+message)
}

func patchImages(image *nodeimage.NodeImage, images map[string]nodeimage.ImageSpec, reason, message string) action.Action {
	return action.Action{
		Verb: action.PatchSpec, Object: image, Reason: reason, Message: message,
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
			"spec": map[string]any{"images": difference(image.Spec.Images, images)},
		}}},
	}
}

// request returns the entry of the image with a new round of pulling the tag.
func (p *pass) request(t *tally, image *nodeimage.NodeImage) nodeimage.ImageSpec {
	spec := image.Spec.Images[t.ref.Name]
	spec.Tags = slices.Clone(spec.Tags)
	tag := find(spec.Tags, t.ref.Tag)
	fresh := tag == nil
	if fresh {
		spec.Tags = append(spec.Tags, nodeimage.ImageTagSpec{Tag: t.ref.Tag, Version: nextVersion(image, t)})
		slices.SortFunc(spec.Tags, func(a, b nodeimage.ImageTagSpec) int { return cmp.Compare(a.Tag, b.Tag) })
		tag = find(spec.Tags, t.ref.Tag)
	}
	next := t.merged(&spec, tag)
	at := find(next.Tags, t.ref.Tag)
	switch {
	case !fresh && t.joins(image, &spec, tag):
		next = spec
		next.Tags = slices.Clone(spec.Tags)
		at = find(next.Tags, t.ref.Tag)
		at.PullPolicy = at.PullPolicy.DeepCopy()
	case !fresh:
		at.Version++
		fallthrough
	default:
		at.CreatedAt = new(metav1.NewTime(p.Now))
	}
	ttl := t.ttl(p.Job, image.Name)
	if tag.PullPolicy != nil && !fresh {
		ttl = larger(ttl, tag.PullPolicy.TTLSecondsAfterFinished)
	}
	at.PullPolicy.TTLSecondsAfterFinished = ttl
	if !t.owns(tag) {
		at.OwnerReferences = append(slices.Clone(tag.OwnerReferences), corev1.ObjectReference{
			APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ImagePullJobKind,
			Namespace: p.Job.Namespace, Name: p.Job.Name, UID: p.Job.UID,
		})
	}
	return next
}

// renew returns the write that has a node keep the tag, and with it the result of its pull, when its time is over soon: as
// long as the job has not completed it would begin there again.
func (p *pass) renew(t *tally, image *nodeimage.NodeImage, n *node) []action.Action {
	if p.policy.Type == v1beta1.CompletionNever || n.ended.IsZero() || n.kept == 0 {
		return nil
	}
	gone := p.Now.Sub(n.ended)
	if left := n.kept - gone - renewal*time.Second; left > 0 {
		p.plan.RequeueWithin(max(left, minWake))
		return nil
	}
	spec := image.Spec.Images[t.ref.Name]
	spec.Tags = slices.Clone(spec.Tags)
	tag := find(spec.Tags, t.ref.Tag)
	tag.PullPolicy = tag.PullPolicy.DeepCopy()
	ttl := int64(gone/time.Second) + int64(*t.ttl(p.Job, image.Name))
	tag.PullPolicy.TTLSecondsAfterFinished = new(int32(min(ttl, longestTTL)))
	images := maps.Clone(image.Spec.Images)
	images[t.ref.Name] = spec
	return []action.Action{patchImages(image, images, "Keep", t.ref.String()+": the job has not completed")}
}

// joins reports whether the pull that others have asked for is under way, and is what the job would ask for: a new round
// would begin it anew.
func (t *tally) joins(image *nodeimage.NodeImage, spec *nodeimage.ImageSpec, tag *nodeimage.ImageTagSpec) bool {
	if t.owns(tag) {
		return false
	}
	for _, told := range image.Status.ImageStatuses[t.ref.Name].Tags {
		ended := told.Phase == nodeimage.ImageSucceeded || told.Phase == nodeimage.ImageFailed
		if told.Tag == tag.Tag && told.Version == tag.Version && ended {
			return false
		}
	}
	next := t.merged(spec, tag)
	at := find(next.Tags, t.ref.Tag)
	if tag.ImagePullPolicy == nodeimage.PullAlways {
		at.ImagePullPolicy = tag.ImagePullPolicy
	}
	return equality.Semantic.DeepEqual(next.SandboxConfig, spec.SandboxConfig) && len(next.PullSecrets) == len(spec.PullSecrets) &&
		t.sameLimits(at, tag)
}

// nextVersion follows that of an old state, which would otherwise count as the result.
func nextVersion(image *nodeimage.NodeImage, t *tally) int64 {
	for _, told := range image.Status.ImageStatuses[t.ref.Name].Tags {
		if told.Tag == t.ref.Tag {
			return told.Version + 1
		}
	}
	return 0
}

// withoutOwn returns the tags without those that the job alone wanted, and without the job as an owner of others, except
// for those that it keeps.
func (t *tally) withoutOwn(tags []nodeimage.ImageTagSpec, keeps func(tag string) bool) []nodeimage.ImageTagSpec {
	var kept []nodeimage.ImageTagSpec
	for _, tag := range tags {
		if !keeps(tag.Tag) && t.owns(&tag) {
			tag.OwnerReferences = slices.DeleteFunc(slices.Clone(tag.OwnerReferences), func(o corev1.ObjectReference) bool { return o.UID == t.uid })
			if len(tag.OwnerReferences) == 0 {
				continue
			}
		}
		kept = append(kept, tag)
	}
	return kept
}

// difference returns the merge patch from one set of images to another.
func difference(before, after map[string]nodeimage.ImageSpec) map[string]any {
	changes := map[string]any{}
	for name := range before {
		if _, stays := after[name]; !stays {
			changes[name] = nil
		}
	}
	for name := range after {
		old, there := before[name]
		change := map[string]any{}
		if !there {
			change = decoded(encoded(after[name]))
		} else if patch, err := jsonpatch.CreateMergePatch(encoded(old), encoded(after[name])); err == nil { // both are JSON objects
			change = decoded(patch)
		}
		if len(change) > 0 {
			changes[name] = change
		}
	}
	return changes
}

func encoded(spec nodeimage.ImageSpec) []byte {
	raw, err := json.Marshal(spec)
	if err != nil {
		panic(fmt.Sprintf("encode an image: %v", err)) // its fields are strings, numbers and times
	}
	return raw
}

func decoded(raw []byte) map[string]any {
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(fmt.Sprintf("decode an image: %v", err)) // it was encoded here
	}
	return out
}
