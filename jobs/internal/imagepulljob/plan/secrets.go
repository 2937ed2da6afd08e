package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/plan/action"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// SecretRecheck is how often the secrets of an unfinished job are read again.
const SecretRecheck = 10 * time.Second

// suffixLength is that of the names of copies.
const suffixLength = 6

// copySecrets has the secrets of the job copied to where node agents may read them. It returns the references to the
// copies, and whether the job may go on.
func (p *pass) copySecrets() (refs []nodeimage.SecretReference, ready bool) {
	names := slices.Compact(slices.Sorted(slices.Values(p.Job.Spec.PullSecrets)))
	if p.Job.Namespace == p.Secrets.Namespace {
		for _, name := range names {
			refs = append(refs, nodeimage.SecretReference{Namespace: p.Job.Namespace, Name: name, Mode: nodeimage.SecretBatch})
		}
		return refs, true
	}
	if len(names) == 0 {
		p.plan.Add(action.Step{Name: "secrets", Actions: p.releaseCopies(nil)})
		return nil, true
	}
	p.plan.RequeueWithin(SecretRecheck)
	if !p.Secrets.NamespaceReady {
		note := "namespace " + p.Secrets.Namespace + " is missing"
		p.warn(EventNamespaceMissing, note)
		return nil, false
	}
	if !slices.Contains(p.Job.Finalizers, v1beta1.ProtectionFinalizer) {
		p.plan.Add(p.setFinalizers("Protect", "copies of secrets outlive the job otherwise", append(slices.Clone(p.Job.Finalizers), v1beta1.ProtectionFinalizer)))
	}
	used := map[types.UID]bool{}
	var actions []action.Action
	for _, name := range names {
		source, known := p.Secrets.Sources[name]
		switch {
		case !known:
			p.notes = append(p.notes, "secret "+name+" cannot be read")
			return nil, false
		case source == nil:
			p.warn(EventSecretNotFound, "secret "+name+" is not found")
			continue
		}
		ref, change := p.copySecret(source, used)
		refs = append(refs, ref)
		actions = append(actions, change...)
	}
	p.plan.Add(action.Step{Name: "secrets", Actions: append(actions, p.releaseCopies(used)...)})
	return refs, true
}

// warn tells the user in the status, and by an event when the status begins to say it.
func (p *pass) warn(reason, note string) {
	p.notes = append(p.notes, note)
	if !strings.Contains(p.Job.Status.Message, note) {
		p.plan.Notices = append(p.plan.Notices, action.Notice{Type: corev1.EventTypeWarning, Reason: reason, Note: note, WithStatus: true})
	}
}

// copySecret returns the reference to the copy of a secret, and the write that makes or renews it.
func (p *pass) copySecret(source *corev1.Secret, used map[types.UID]bool) (nodeimage.SecretReference, []action.Action) {
	shown := p.chooseCopy(source)
	if shown == nil {
		made := p.newCopy(source)
		return reference(made), []action.Action{{
			Verb: action.Create, Object: made, Reason: "CopySecret", Message: "copy of secret " + source.Name,
		}}
	}
	used[shown.UID] = true
	if shown.Type != source.Type { // which cannot be changed
		return reference(shown), []action.Action{{
			Verb: action.Delete, Object: shown, Reason: "ReplaceSecret", Message: "the type of secret " + source.Name + " has changed",
		}}
	}
	body := p.renewal(source, shown)
	if len(body) == 0 {
		return reference(shown), nil
	}
	return reference(shown), []action.Action{{
		Verb: action.PatchSpec, Object: shown, Reason: "RenewSecret", Message: "copy of secret " + source.Name,
		Patches: []action.Patch{{Type: types.MergePatchType, Body: body}},
	}}
}

func reference(secret *corev1.Secret) nodeimage.SecretReference {
	return nodeimage.SecretReference{Namespace: secret.Namespace, Name: secret.Name, Mode: nodeimage.SecretBatch}
}

// chooseCopy returns the copy that is used: one that refers to the job already, or else the first one. Only what is
// marked as a copy counts.
func (p *pass) chooseCopy(source *corev1.Secret) *corev1.Secret {
	var copies []*corev1.Secret
	for _, c := range p.Secrets.Copies {
		if isCopy(c) && c.DeletionTimestamp == nil && c.Annotations[v1beta1.SecretSourceAnnotation] == source.Namespace+"/"+source.Name {
			copies = append(copies, c)
		}
	}
	slices.SortFunc(copies, func(a, b *corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range copies {
		if slices.Contains(References(c), p.key()) {
			return c
		}
	}
	if len(copies) == 0 {
		return nil
	}
	return copies[0]
}

func isCopy(secret *corev1.Secret) bool {
	_, old := secret.Labels[v1beta1.SecretSourceUIDLabel]
	return old || secret.Annotations[v1beta1.SecretModeAnnotation] == v1beta1.SecretModeBatch
}

// References returns the jobs that use a copy, as namespace/name.
func References(secret *corev1.Secret) []string {
	text := secret.Annotations[v1beta1.SecretReferencesAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (p *pass) key() string { return p.Job.Namespace + "/" + p.Job.Name }

// newCopy returns a copy under a name that follows from the secret's, so that there is one copy however often it is made.
func (p *pass) newCopy(source *corev1.Secret) *corev1.Secret {
	sum := sha256.Sum256([]byte(source.Namespace + "/" + source.Name))
	suffix := hex.EncodeToString(sum[:])[:suffixLength]
	name := source.Name
	if longest := validation.DNS1123SubdomainMaxLength - 1 - suffixLength; len(name) > longest {
		name = strings.TrimRight(name[:longest], "-.")
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Secrets.Namespace, Name: name + "-" + suffix,
			Labels: maps.Clone(source.Labels), Annotations: p.marks(source, nil),
		},
		Type: source.Type, Data: source.Data,
	}
}

// marks returns the annotations of a copy: those of its source, and by what it is known.
func (p *pass) marks(source *corev1.Secret, references []string) map[string]string {
	marks := map[string]string{}
	maps.Copy(marks, source.Annotations)
	delete(marks, corev1.LastAppliedConfigAnnotation) // it would repeat the data
	references = append(slices.Clone(references), p.key())
	slices.Sort(references)
	marks[v1beta1.SecretSourceAnnotation] = source.Namespace + "/" + source.Name
	marks[v1beta1.SecretReferencesAnnotation] = strings.Join(slices.Compact(references), ",")
	marks[v1beta1.SecretModeAnnotation] = v1beta1.SecretModeBatch
	return marks
}

// renewal returns the merge patch that makes a copy equal to its source and refer to the job.
func (p *pass) renewal(source, shown *corev1.Secret) map[string]any {
	body, meta := map[string]any{}, map[string]any{}
	if changes := added(shown.Labels, source.Labels); len(changes) > 0 {
		meta["labels"] = changes
	}
	if changes := added(shown.Annotations, p.marks(source, References(shown))); len(changes) > 0 {
		meta["annotations"] = changes
	}
	if len(meta) > 0 {
		body["metadata"] = meta
	}
	if !equality.Semantic.DeepEqual(shown.Data, source.Data) {
		data := map[string]any{}
		for key := range shown.Data {
			data[key] = nil
		}
		for key, value := range source.Data {
			data[key] = value
		}
		body["data"] = data
	}
	return body
}

// added returns what is absent or different.
func added(have, want map[string]string) map[string]any {
	changes := map[string]any{}
	for key, value := range want {
		if now, ok := have[key]; !ok || now != value {
			changes[key] = value
		}
	}
	return changes
}

// releaseCopies takes the job out of all copies but those in use. A copy that no job uses is deleted.
func (p *pass) releaseCopies(used map[types.UID]bool) []action.Action {
	var actions []action.Action
	for _, c := range p.Secrets.Copies {
		references := References(c)
		if used[c.UID] || !isCopy(c) || c.DeletionTimestamp != nil || !slices.Contains(references, p.key()) {
			continue
		}
		others := slices.DeleteFunc(references, func(r string) bool { return r == p.key() })
		a := action.Action{Verb: action.Delete, Object: c, Reason: "ReleaseSecret", Message: "no job uses it"}
		if len(others) > 0 {
			a.Verb, a.Message = action.PatchMetadata, fmt.Sprintf("%d other jobs use it", len(others))
			a.Patches = []action.Patch{{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{
				"annotations": map[string]any{v1beta1.SecretReferencesAnnotation: strings.Join(others, ",")},
			}}}}
		}
		actions = append(actions, a)
	}
	return actions
}
