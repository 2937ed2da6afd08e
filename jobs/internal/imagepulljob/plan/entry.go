package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
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
	// slack is how many seconds all attempts of a pull may take longer than they should.
	slack = 600
	// shortestTTL and renewal are how many seconds a tag stays at least, and how many before its time is over an unfinished
	// job prolongs that.
	shortestTTL, renewal = 120, 60
	// keepNever is how long the tags of such a job stay, keepSpread by how much that differs from node to node.
	keepNever, keepSpread = 86400, 600
	// spread is by how many seconds the tags of other jobs differ, so that nodes do not drop them all at once.
	spread = 300
	// longestTTL is a limit of the field.
	longestTTL = 1<<31 - 1 - spread
	// longestDeadline is less than the field allows: JSON numbers of more than 53 bits lose digits in patches.
	longestDeadline = 1<<31 - 1
)

// pullPolicy returns the limits of the job's pulls, without a spread over the nodes.
func (p *pass) pullPolicy() nodeimage.ImageTagPullPolicy {
	template := p.Job.Spec.ImagePullJobTemplate.DeepCopy()
	DefaultTemplate(template)
	timeout := *template.PullPolicy.TimeoutSeconds
	backoff := *template.PullPolicy.BackoffLimit
	policy := nodeimage.ImageTagPullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &backoff}
	if p.policy.Type == v1beta1.CompletionNever {
		policy.ActiveDeadlineSeconds = new(min(max(minDeadline, int64(timeout)*(int64(backoff)+1)), longestDeadline))
		policy.TTLSecondsAfterFinished = new(int32(keepNever))
		return policy
	}
	deadline := policy.LongestSeconds() + slack // or else a node that dies while it pulls would never free its place
	if own := p.policy.ActiveDeadlineSeconds; own != nil {
		deadline = *own
	}
	policy.ActiveDeadlineSeconds = new(min(deadline, longestDeadline))
	keep := int64(timeout) * int64(backoff)
	switch {
	case p.policy.TTLSecondsAfterFinished != nil:
		keep = int64(*p.policy.TTLSecondsAfterFinished)
	case p.policy.ActiveDeadlineSeconds != nil:
		keep = min(*p.policy.ActiveDeadlineSeconds, longestTTL)
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

// merged returns the entry of the image with the job's fields. The tag must be there.
func (t *tally) merged(image *nodeimage.ImageSpec, tag *nodeimage.ImageTagSpec) nodeimage.ImageSpec {
	next := *image
	next.Tags = slices.Clone(image.Tags)
	alone := len(tag.OwnerReferences) == 0 || len(tag.OwnerReferences) == 1 && t.owns(tag)
	if alone && len(image.Tags) == 1 || !t.owns(tag) {
		next.SandboxConfig = t.sandbox()
	}
	next.PullSecrets = t.secretsOf(image)
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

// secretsOf returns the references to secrets with those of the job, and without those to secrets that do not exist. A
// write for another reason drops them: each costs the agent a request with each pull, and their number is limited.
func (t *tally) secretsOf(image *nodeimage.ImageSpec) []nodeimage.SecretReference {
	next := slices.DeleteFunc(slices.Clone(image.PullSecrets), func(s nodeimage.SecretReference) bool {
		return t.gone[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] && !refersTo(t.secrets, s)
	})
	for _, secret := range t.secrets {
		if !refersTo(next, secret) {
			next = append(next, secret)
		}
	}
	return next
}

// hasSecrets reports whether the entry of the image refers to all secrets of the job.
func (t *tally) hasSecrets(image *nodeimage.ImageSpec) bool {
	return !slices.ContainsFunc(t.secrets, func(s nodeimage.SecretReference) bool { return !refersTo(image.PullSecrets, s) })
}

func refersTo(references []nodeimage.SecretReference, secret nodeimage.SecretReference) bool {
	return slices.ContainsFunc(references, func(s nodeimage.SecretReference) bool {
		return s.Namespace == secret.Namespace && s.Name == secret.Name
	})
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

// lacksRoom reports whether the NodeImage has no room for another image, or the image none for another tag or secret.
func (t *tally) lacksRoom(image *nodeimage.NodeImage) bool {
	entry, there := image.Spec.Images[t.ref.Name]
	if !there {
		return len(image.Spec.Images) >= nodeimage.MaxImagesPerNode
	}
	return find(entry.Tags, t.ref.Tag) == nil && len(entry.Tags) >= nodeimage.MaxTagsPerImage ||
		!t.hasSecrets(&entry) && len(t.secretsOf(&entry)) > nodeimage.MaxSecretsPerImage
}

// part is how much a job wants of a NodeImage.
type part int

const (
	nothing   part = iota // no tag stays that the job has asked for
	kept                  // its tag of the image stays, no other
	prolonged             // and the result of its pull stays longer
	asked                 // its tag is pulled, in a round of its own or one that is under way
)

// bring returns the write that gives a NodeImage the part that the job wants; none if it has that already.
func (p *pass) bring(t *tally, image *nodeimage.NodeImage, n *node, want part, reason, message string) []action.Action {
	changes := difference(image.Spec.Images, p.desired(t, image, n, want))
	if len(changes) == 0 {
		return nil
	}
	return []action.Action{{
		Verb:    action.PatchSpec,
		Object:  image,
		Reason:  reason,
		Message: t.ref.String() + ": " + message,
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{"spec": map[string]any{"images": changes}}}},
	}}
}

// desired returns the entries of a NodeImage that are to be others, as the job wants them. An entry without tags is to go.
func (p *pass) desired(t *tally, image *nodeimage.NodeImage, n *node, want part) map[string]nodeimage.ImageSpec {
	var entries map[string]nodeimage.ImageSpec // none for most nodes of most passes
	for name, entry := range image.Spec.Images {
		keep := ""
		if want != nothing && name == t.ref.Name {
			keep = t.ref.Tag
		}
		if tags, changed := t.withoutOwn(entry.Tags, keep); changed {
			if entries == nil {
				entries = map[string]nodeimage.ImageSpec{}
			}
			entry.Tags = tags
			entries[name] = entry
		}
	}
	if want != asked && want != prolonged {
		return entries
	}
	if entries == nil {
		entries = map[string]nodeimage.ImageSpec{}
	}
	entry, changed := entries[t.ref.Name]
	if !changed {
		entry = image.Spec.Images[t.ref.Name]
	}
	if want == asked {
		entry = p.request(t, image, entry)
	} else {
		entry = p.prolonged(t, image, entry, n)
	}
	entries[t.ref.Name] = entry
	return entries
}

// request returns the entry of the image with a new round of pulling the tag.
func (p *pass) request(t *tally, image *nodeimage.NodeImage, spec nodeimage.ImageSpec) nodeimage.ImageSpec {
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
			APIVersion: v1beta1.GroupVersion.String(),
			Kind:       v1beta1.ImagePullJobKind,
			Namespace:  p.Job.Namespace,
			Name:       p.Job.Name,
			UID:        p.Job.UID,
		})
	}
	return next
}

// expires reports whether the result of a node goes soon: as long as the job has not completed it would begin there again.
func (p *pass) expires(n *node) bool {
	if p.policy.Type == v1beta1.CompletionNever || n.ended.IsZero() || n.kept == 0 {
		return false
	}
	if left := n.kept - p.Now.Sub(n.ended) - renewal*time.Second; left > 0 {
		p.plan.RequeueWithin(max(left, minWake))
		return false
	}
	return true
}

// prolonged returns the entry of the image with a tag that stays longer, and with it the result of its pull.
func (p *pass) prolonged(t *tally, image *nodeimage.NodeImage, spec nodeimage.ImageSpec, n *node) nodeimage.ImageSpec {
	spec.Tags = slices.Clone(spec.Tags)
	tag := find(spec.Tags, t.ref.Tag)
	tag.PullPolicy = tag.PullPolicy.DeepCopy()
	ttl := int64(p.Now.Sub(n.ended)/time.Second) + int64(*t.ttl(p.Job, image.Name))
	tag.PullPolicy.TTLSecondsAfterFinished = new(int32(min(ttl, longestTTL)))
	return spec
}

// joins reports whether the pull that others have asked for is under way, and equals the pull that the job would ask
// for: a new round would start it again.
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
	return equality.Semantic.DeepEqual(next.SandboxConfig, spec.SandboxConfig) && t.hasSecrets(spec) &&
		t.sameLimits(at, tag)
}

// nextVersion returns the version after the version of an old state, which would otherwise count as the result.
func nextVersion(image *nodeimage.NodeImage, t *tally) int64 {
	for _, told := range image.Status.ImageStatuses[t.ref.Name].Tags {
		if told.Tag == t.ref.Tag {
			return told.Version + 1
		}
	}
	return 0
}

// withoutOwn returns the tags without those that the job alone wanted, and without the job as an owner of others,
// except for one that it keeps, and whether they differ from the present tags.
func (t *tally) withoutOwn(tags []nodeimage.ImageTagSpec, keep string) (left []nodeimage.ImageTagSpec, changed bool) {
	for i := range tags {
		changed = changed || tags[i].Tag != keep && t.owns(&tags[i])
	}
	if !changed {
		return tags, false
	}
	for _, tag := range tags {
		if tag.Tag != keep && t.owns(&tag) {
			tag.OwnerReferences = slices.DeleteFunc(slices.Clone(tag.OwnerReferences), func(o corev1.ObjectReference) bool { return o.UID == t.uid })
			if len(tag.OwnerReferences) == 0 {
				continue
			}
		}
		left = append(left, tag)
	}
	return left, true
}

// difference returns the merge patch from the images that are there to entries that are to be others.
func difference(before, entries map[string]nodeimage.ImageSpec) map[string]any {
	if len(entries) == 0 {
		return nil
	}
	changes := map[string]any{}
	for name, entry := range entries {
		old, there := before[name]
		switch {
		case len(entry.Tags) == 0:
			changes[name] = nil
		case !there:
			changes[name] = decoded(encoded(entry))
		default:
			patch, err := jsonpatch.CreateMergePatch(encoded(old), encoded(entry))
			if change := decoded(patch); err == nil && len(change) > 0 { // both are JSON objects
				changes[name] = change
			}
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
