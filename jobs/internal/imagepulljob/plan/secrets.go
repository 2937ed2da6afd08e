package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// SecretRecheck is how often the secrets of an unfinished job are read again. Users see a change within ten seconds, also
// where the answer that is used was given to another job shortly before.
const SecretRecheck = 5 * time.Second

const (
	// suffixLength is the length of the suffix in names of copies.
	suffixLength = 6
	// mostNames is how many names a copy may have. Where thousands of namespaces have a secret of the same name, two of
	// the first ones are equal.
	mostNames = 4
)

// copySecrets has the secrets of the job copied to where node agents may read them. It returns the references to the
// copies, and whether the job may continue.
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
	if len(p.Secrets.Lacking) > 0 {
		p.warn(EventSecretsForbidden, p.lacks())
		return nil, false
	}
	if p.Secrets.Unread {
		return nil, false
	}
	protected := slices.Contains(p.Job.Finalizers, v1beta1.ProtectionFinalizer)
	if !protected && slices.ContainsFunc(names, func(n string) bool { return keyOf(p.Secrets.Sources[n]) != "" }) {
		p.plan.Add(p.setFinalizers("Protect", "the copies of its secrets are deleted before the job", append(slices.Clone(p.Job.Finalizers), v1beta1.ProtectionFinalizer)))
	}
	used := map[types.UID]bool{}
	var actions []action.Action
	for _, name := range names {
		source, known := p.Secrets.Sources[name]
		switch {
		case slices.Contains(p.Secrets.Forbidden, name):
			p.warn(EventSecretsForbidden, fmt.Sprintf(
				"%s: the operator has no permission to get secret %s; install component pullsecrets of feature jobs", MessageSecretsForbidden, name))
			return nil, false
		case !known:
			p.notes = append(p.notes, "failed to read secret "+name)
			return nil, false
		case source == nil:
			p.warn(EventSecretNotFound, "secret "+name+" not found")
			continue
		case keyOf(source) == "":
			p.warn(EventSecretType, fmt.Sprintf("secret %s has type %s: the type of a pull secret must be %s or %s",
				name, source.Type, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg))
			continue
		}
		ref, change := p.copySecret(source, used)
		refs = append(refs, ref)
		actions = append(actions, change...)
	}
	p.plan.Add(action.Step{Name: "secrets", Actions: append(actions, p.releaseCopies(used)...)})
	return refs, true
}

// lacks names the permissions that are lacking for copies of secrets, and the Role that grants them.
func (p *pass) lacks() string {
	return fmt.Sprintf("%s: the operator has no permission to %s secrets in namespace %s; apply Role daemon-pull-secrets of feature daemon",
		MessageSecretsForbidden, strings.Join(p.Secrets.Lacking, ", "), p.Secrets.Namespace)
}

// keyOf returns the key under which a pull secret has its credentials, empty for a secret of another type: who may create
// jobs must not have any other secret copied.
func keyOf(secret *corev1.Secret) string {
	switch {
	case secret == nil:
	case secret.Type == corev1.SecretTypeDockerConfigJson:
		return corev1.DockerConfigJsonKey
	case secret.Type == corev1.SecretTypeDockercfg:
		return corev1.DockerConfigKey
	}
	return ""
}

// contentOf is the data of a pull secret that is copied.
func contentOf(source *corev1.Secret) map[string][]byte {
	key := keyOf(source)
	return map[string][]byte{key: source.Data[key]}
}

// warn adds the note to the status, and sends an event when the status begins to show it.
func (p *pass) warn(reason, note string) {
	p.notes = append(p.notes, note)
	if !strings.Contains(p.Job.Status.Message, note) {
		p.plan.Notices = append(p.plan.Notices, action.Notice{
			Type:       corev1.EventTypeWarning,
			Reason:     reason,
			Note:       note,
			WithStatus: true,
		})
	}
}

// copySecret returns the reference to the copy of a secret, and the write that makes or renews it.
func (p *pass) copySecret(source *corev1.Secret, used map[types.UID]bool) (nodeimage.SecretReference, []action.Action) {
	shown := p.chooseCopy(source)
	if shown == nil {
		made := p.newCopy(source)
		return reference(made), []action.Action{{
			Verb:    action.Create,
			Object:  made,
			Reason:  "CopySecret",
			Message: "copy of secret " + source.Name,
		}}
	}
	used[shown.UID] = true
	if shown.Type != source.Type { // which cannot be changed
		return reference(shown), []action.Action{{
			Verb:    action.Delete,
			Object:  shown,
			Reason:  "ReplaceSecret",
			Message: "the type of secret " + source.Name + " has changed",
		}}
	}
	body := p.renewal(source, shown)
	if len(body) == 0 {
		return reference(shown), nil
	}
	return reference(shown), []action.Action{{
		Verb:    action.PatchSpec,
		Object:  shown,
		Reason:  "RenewSecret",
		Message: "copy of secret " + source.Name,
		Patches: []action.Patch{{Type: types.MergePatchType, Body: body}},
	}}
}

func reference(secret *corev1.Secret) nodeimage.SecretReference {
	return nodeimage.SecretReference{
		Namespace: secret.Namespace,
		Name:      secret.Name,
		Mode:      nodeimage.SecretBatch,
	}
}

// chooseCopy returns the copy that is used: one that refers to the job already, or else the first one. Only secrets
// marked as copies count.
func (p *pass) chooseCopy(source *corev1.Secret) *corev1.Secret {
	var copies []*corev1.Secret
	for _, c := range p.Secrets.Copies {
		if c.DeletionTimestamp == nil && IsCopyOf(c, types.NamespacedName{Namespace: source.Namespace, Name: source.Name}) {
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

// IsCopyOf reports whether a secret is a copy of that one.
func IsCopyOf(secret *corev1.Secret, source types.NamespacedName) bool {
	return isCopy(secret) && secret.Annotations[v1beta1.SecretSourceAnnotation] == source.String()
}

// References returns the jobs that use a copy, as namespace/name.
func References(secret *corev1.Secret) []string {
	text := secret.Annotations[v1beta1.SecretReferencesAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// JobOf returns the name of a job that a copy refers to.
func JobOf(reference string) types.NamespacedName {
	namespace, name, _ := strings.Cut(reference, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (p *pass) key() string { return p.Job.Namespace + "/" + p.Job.Name }

// CopyNames returns the names that the copy of a secret may have, the first of which is free as a rule. They follow from
// the secret's, so that there is one copy however often it is made.
func CopyNames(source types.NamespacedName) []string {
	sum := sha256.Sum256([]byte(source.String()))
	digits := hex.EncodeToString(sum[:])
	name := source.Name
	if longest := validation.DNS1123SubdomainMaxLength - 1 - suffixLength; len(name) > longest {
		name = strings.TrimRight(name[:longest], "-.")
	}
	names := make([]string, mostNames)
	for i := range names {
		names[i] = name + "-" + digits[i*suffixLength:][:suffixLength]
	}
	return names
}

// newCopy returns a copy under the first name that no other secret has.
func (p *pass) newCopy(source *corev1.Secret) *corev1.Secret {
	names := CopyNames(types.NamespacedName{Namespace: source.Namespace, Name: source.Name})
	name := names[max(0, slices.IndexFunc(names, func(n string) bool { return !slices.Contains(p.Secrets.Taken, n) }))]
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   p.Secrets.Namespace,
			Name:        name,
			Labels:      labelsOf(source),
			Annotations: p.marks(source, nil),
		},
		Type: source.Type,
		Data: contentOf(source),
	}
}

// labelsOf returns the label of a new copy, by which clients find it. The labels of its source are left out: they are
// instructions to other tools about the source, such as to copy it or to prune objects that are not in a repository.
func labelsOf(source *corev1.Secret) map[string]string {
	return map[string]string{v1beta1.SecretSourceUIDLabel: string(source.UID)}
}

// marks returns the annotations of a copy, by which it is known.
func (p *pass) marks(source *corev1.Secret, references []string) map[string]string {
	references = append(slices.Clone(references), p.key())
	slices.Sort(references)
	return map[string]string{
		v1beta1.SecretSourceAnnotation:     source.Namespace + "/" + source.Name,
		v1beta1.SecretReferencesAnnotation: strings.Join(slices.Compact(references), ","),
		v1beta1.SecretModeAnnotation:       v1beta1.SecretModeBatch,
	}
}

// renewal returns the merge patch that makes a copy equal to its source and refer to the job.
func (p *pass) renewal(source, shown *corev1.Secret) map[string]any {
	body, meta := map[string]any{}, map[string]any{}
	labels := labelsOf(source)
	if _, marked := shown.Labels[v1beta1.SecretSourceUIDLabel]; !marked { // made by a release that does not
		delete(labels, v1beta1.SecretSourceUIDLabel)
	}
	if changes := corrected(shown.Labels, labels, source.Labels); len(changes) > 0 {
		meta["labels"] = changes
	}
	if changes := corrected(shown.Annotations, p.marks(source, References(shown)), source.Annotations); len(changes) > 0 {
		meta["annotations"] = changes
	}
	if len(meta) > 0 {
		body["metadata"] = meta
	}
	if content := contentOf(source); !equality.Semantic.DeepEqual(shown.Data, content) {
		data := map[string]any{}
		for key := range shown.Data {
			data[key] = nil
		}
		for key, value := range content {
			data[key] = value
		}
		body["data"] = data
	}
	return body
}

// corrected returns the absent and the different values, and removes those that an earlier release has copied of the
// source.
func corrected(have, want, source map[string]string) map[string]any {
	changes := map[string]any{}
	for key, value := range source {
		now, there := have[key]
		if _, ours := want[key]; there && !ours && now == value && key != v1beta1.SecretSourceUIDLabel {
			changes[key] = nil
		}
	}
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
		if !used[c.UID] {
			actions = append(actions, without(c, []string{p.key()})...)
		}
	}
	return actions
}

// Release is the plan that takes jobs out of a copy of a secret.
func Release(shown *corev1.Secret, jobs []string, known action.Refusals, now time.Time) action.Plan {
	plan := action.Plan{Refusals: known, Now: now}
	plan.Add(action.Step{Name: "release", Actions: without(shown, jobs)})
	return action.Admit(plan)
}

// without returns the write that takes jobs out of a copy, which is its deletion if no other job uses it.
func without(shown *corev1.Secret, jobs []string) []action.Action {
	references := References(shown)
	others := slices.DeleteFunc(slices.Clone(references), func(r string) bool { return slices.Contains(jobs, r) })
	if !isCopy(shown) || shown.DeletionTimestamp != nil || len(others) == len(references) {
		return nil
	}
	a := action.Action{
		Verb:    action.Delete,
		Object:  shown,
		Reason:  "ReleaseSecret",
		Message: "the last job that used it has ended",
	}
	if len(others) > 0 {
		a.Verb = action.PatchMetadata
		a.Message = fmt.Sprintf("%d other jobs use it", len(others))
		a.Patches = []action.Patch{{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{v1beta1.SecretReferencesAnnotation: strings.Join(others, ",")},
		}}}}
	}
	return []action.Action{a}
}
