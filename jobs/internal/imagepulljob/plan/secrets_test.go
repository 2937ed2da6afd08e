package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name, UID: types.UID(gen.Namespace + name), Annotations: map[string]string{
			"a": "b", corev1.LastAppliedConfigAnnotation: "secret",
		}},
		Type: corev1.SecretTypeDockerConfigJson, Data: data,
	}
}

func withSecret(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"s"} }

func TestSecretsAreCopiedOnceAndReleased(t *testing.T) {
	data := map[string][]byte{".dockerconfigjson": []byte("{}")}
	source := secret("s", data)
	secrets := Secrets{Namespace: config, NamespaceReady: true, Sources: map[string]*corev1.Secret{"s": source}}
	j := job(withSecret)
	p := compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: secrets, Now: now})
	require.Len(t, p.Steps, 3, p.String())
	assert.Equal(t, action.PatchMetadata, p.Steps[0].Actions[0].Verb, "the finalizer comes first")
	made := p.Steps[1].Actions[0].Object.(*corev1.Secret).DeepCopy()
	assert.Equal(t, config, made.Namespace)
	assert.Equal(t, data, made.Data)
	assert.Equal(t, map[string]string{
		v1beta1.SecretSourceAnnotation: "default/s", v1beta1.SecretReferencesAnnotation: "default/warm", v1beta1.SecretModeAnnotation: "batch",
	}, made.Annotations)
	assert.Equal(t, map[string]string{v1beta1.SecretSourceUIDLabel: string(source.UID)}, made.Labels, "clients list by it")
	node := written(t, &p, image("n0"))
	assert.Equal(t, []nodeimage.SecretReference{{Namespace: config, Name: made.Name, Mode: nodeimage.SecretBatch}}, node.Spec.Images["nginx"].PullSecrets)

	made.UID = "copy"
	protected(j)
	secrets.Copies = []*corev1.Secret{made}
	p = compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{node}, Secrets: secrets, Now: now})
	assert.True(t, p.Empty(), p.String())

	other := job(withSecret, protected, func(j *v1beta1.ImagePullJob) { j.Name = "other" })
	p = compute(t, Snapshot{Job: other, Secrets: secrets, Now: now})
	assert.Contains(t, fmt.Sprint(p.Steps[0].Actions[0].Patches[0].Body), "default/other,default/warm")

	shared := made.DeepCopy()
	shared.Annotations[v1beta1.SecretReferencesAnnotation] = "default/other,default/warm"
	secrets.Copies = []*corev1.Secret{shared}
	p = Compute(Snapshot{Job: job(withSecret, protected, ended(time.Hour)), Secrets: secrets, Now: now})
	assert.Equal(t, "release:\n  PatchMetadata secret "+made.Name+" (ReleaseSecret): 1 other jobs use it\n"+
		"finalizer:\n  PatchMetadata imagepulljob warm (Released): the job has finished using its secrets\n", p.String())
	secrets.Copies = []*corev1.Secret{made}
	p = Compute(Snapshot{Job: job(withSecret, protected, ended(time.Hour)), Secrets: secrets, Now: now})
	assert.Contains(t, p.String(), "Delete secret "+made.Name)
	p = Compute(Snapshot{Job: job(withSecret, ended(time.Hour)), Secrets: secrets, Now: now})
	assert.Equal(t, "release:\n  Delete secret "+made.Name+" (ReleaseSecret): the last job that used it has ended\n", p.String(), "somebody has removed the finalizer")

	again := source.DeepCopy()
	again.UID = "again"
	secrets.Sources = map[string]*corev1.Secret{"s": again}
	p = Compute(Snapshot{Job: j, Secrets: secrets, Now: now})
	assert.Equal(t, map[string]any{"metadata": map[string]any{"labels": map[string]any{v1beta1.SecretSourceUIDLabel: "again"}}}, p.Steps[0].Actions[0].Patches[0].Body)

	changed := secret("s", map[string][]byte{".dockerconfigjson": []byte("x"), "other": []byte("y")})
	secrets.Sources = map[string]*corev1.Secret{"s": changed}
	p = Compute(Snapshot{Job: j, Secrets: secrets, Now: now})
	assert.Equal(t, map[string]any{"data": map[string]any{".dockerconfigjson": []byte("x")}}, p.Steps[0].Actions[0].Patches[0].Body)

	earlier := made.DeepCopy()
	earlier.Annotations["a"], earlier.Annotations["own"] = "b", "c"
	secrets.Sources, secrets.Copies = map[string]*corev1.Secret{"s": source}, []*corev1.Secret{earlier}
	p = Compute(Snapshot{Job: j, Secrets: secrets, Now: now})
	assert.Equal(t, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"a": nil}}}, p.Steps[0].Actions[0].Patches[0].Body,
		"what an earlier release has copied of the source goes")

	foreign := made.DeepCopy()
	foreign.Labels = nil
	delete(foreign.Annotations, v1beta1.SecretModeAnnotation)
	secrets.Copies = []*corev1.Secret{foreign}
	p = Compute(Snapshot{Job: j, Secrets: secrets, Now: now})
	assert.Equal(t, action.Create, p.Steps[0].Actions[0].Verb, "what has no mark is no copy")
}

func TestMissingSecretsAreTold(t *testing.T) {
	absent := Secrets{Namespace: config, NamespaceReady: true, Sources: map[string]*corev1.Secret{"s": nil}}
	p := compute(t, Snapshot{Job: job(withSecret, protected), Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: absent, Now: now})
	assert.Equal(t, "job is running, progress 0.0%; secret s not found", p.status.Message)
	require.Len(t, p.Notices, 1)
	assert.Equal(t, EventSecretNotFound, p.Notices[0].Reason)
	assert.Equal(t, 1, p.Count(action.PatchSpec), "the job goes on without it")

	p = compute(t, Snapshot{Job: job(withSecret), Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: absent, Now: now})
	assert.Zero(t, p.Count(action.PatchMetadata), "nothing is copied: it needs no finalizer")

	opaque := secret("s", map[string][]byte{"password": []byte("x")})
	opaque.Type = corev1.SecretTypeOpaque
	p = compute(t, Snapshot{Job: job(withSecret), Targets: []*nodeimage.NodeImage{image("n0")}, Now: now,
		Secrets: Secrets{Namespace: config, NamespaceReady: true, Sources: map[string]*corev1.Secret{"s": opaque}}})
	assert.Equal(t, "job is running, progress 0.0%; secret s has type Opaque: the type of a pull secret must be kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg", p.status.Message)
	assert.Equal(t, EventSecretType, p.Notices[0].Reason)
	assert.Equal(t, [2]int{1, 0}, [2]int{p.Count(action.PatchSpec), p.Count(action.Create)}, "it is not copied, and the job goes on")

	p = compute(t, Snapshot{Job: job(withSecret), Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: Secrets{Namespace: config}, Now: now})
	assert.Equal(t, "job is running, progress 0.0%; namespace kruise-daemon-config is missing", p.status.Message)
	assert.True(t, p.Empty())
	assert.Equal(t, SecretRecheck, p.RequeueAfter)

	inside := job(withSecret, func(j *v1beta1.ImagePullJob) { j.Namespace = config })
	p = compute(t, Snapshot{Job: inside, Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: Secrets{Namespace: config}, Now: now})
	assert.Equal(t, []nodeimage.SecretReference{{Namespace: config, Name: "s", Mode: nodeimage.SecretBatch}}, written(t, &p, image("n0")).Spec.Images["nginx"].PullSecrets)
}

// A reference to a copy that was deleted leaves with the next request for the image, and no pull begins again for that. A
// reference to the job's own copy stays: the job makes the copy again.
func TestReferencesToDeletedCopiesGo(t *testing.T) {
	own := CopyNames(types.NamespacedName{Namespace: gen.Namespace, Name: "s"})[0]
	there, gone := nodeimage.SecretReference{Namespace: config, Name: "there", Mode: nodeimage.SecretBatch}, nodeimage.SecretReference{Namespace: config, Name: "gone", Mode: nodeimage.SecretBatch}
	mine, elsewhere := nodeimage.SecretReference{Namespace: config, Name: own, Mode: nodeimage.SecretBatch}, nodeimage.SecretReference{Namespace: "elsewhere", Name: "gone"}
	secrets := Secrets{
		Namespace: config, NamespaceReady: true, Gone: []string{"gone", own}, Sources: map[string]*corev1.Secret{"s": secret("s", nil)},
	}
	o := image("n0")
	o.Spec.Images = map[string]nodeimage.ImageSpec{"nginx": {
		PullSecrets: []nodeimage.SecretReference{gone, there, mine, elsewhere}, Tags: []nodeimage.ImageTagSpec{{Tag: "0", CreatedAt: new(metav1.NewTime(now))}},
	}}
	j := job(withSecret, protected)
	p := compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{o}, Secrets: secrets, Now: now})
	o = written(t, &p, o)
	assert.Equal(t, []nodeimage.SecretReference{there, mine, elsewhere}, o.Spec.Images["nginx"].PullSecrets)

	answer(o, nodeimage.ImagePulling)
	pulls := o.Spec.Images["nginx"]
	pulls.PullSecrets = []nodeimage.SecretReference{gone, mine}
	o.Spec.Images["nginx"] = pulls
	p = compute(t, Snapshot{Job: j, Targets: []*nodeimage.NodeImage{o}, Secrets: secrets, Now: now})
	assert.Zero(t, p.Count(action.PatchSpec), "its pull is under way")
}

// References that nothing drops would fill the entry of an image, and its NodeImage would be refused.
func TestAnImageHasRoomForSecretsOrTheNodeWaits(t *testing.T) {
	o := image("n0")
	full := nodeimage.ImageSpec{Tags: []nodeimage.ImageTagSpec{{Tag: "0", CreatedAt: new(metav1.NewTime(now))}}}
	secrets := Secrets{Namespace: config, NamespaceReady: true, Sources: map[string]*corev1.Secret{"s": secret("s", nil)}}
	for i := range nodeimage.MaxSecretsPerImage {
		full.PullSecrets = append(full.PullSecrets, nodeimage.SecretReference{Namespace: config, Name: fmt.Sprint("c", i), Mode: nodeimage.SecretBatch})
	}
	o.Spec.Images = map[string]nodeimage.ImageSpec{"nginx": full}
	p := compute(t, Snapshot{Job: job(withSecret, protected), Targets: []*nodeimage.NodeImage{o}, Secrets: secrets, Now: now})
	assert.Zero(t, p.Count(action.PatchSpec))
	assert.Contains(t, p.status.Message, "1 nodes have the maximum number of images, tags or pull secrets")

	secrets.Gone = []string{"c7"}
	p = compute(t, Snapshot{Job: job(withSecret, protected), Targets: []*nodeimage.NodeImage{o}, Secrets: secrets, Now: now})
	assert.Equal(t, 1, p.Count(action.PatchSpec), p.String())
	assert.Len(t, written(t, &p, o).Spec.Images["nginx"].PullSecrets, nodeimage.MaxSecretsPerImage)
}

// Six digits are few: of some thousand namespaces with a secret of the same name, two may have the same.
func TestAnotherNameIsTakenWhereOneIsTaken(t *testing.T) {
	source := secret("s", nil)
	names := CopyNames(types.NamespacedName{Namespace: "default", Name: "s"})
	for i, want := range []string{names[0], names[1], names[2]} {
		secrets := Secrets{Namespace: config, NamespaceReady: true, Sources: map[string]*corev1.Secret{"s": source}, Taken: names[:i]}
		p := compute(t, Snapshot{Job: job(withSecret, protected), Targets: []*nodeimage.NodeImage{image("n0")}, Secrets: secrets, Now: now})
		assert.Equal(t, want, p.Steps[0].Actions[0].Object.GetName())
		assert.Regexp(t, "^s-[0-9a-f]{6}$", want)
		assert.Equal(t, want, written(t, &p, image("n0")).Spec.Images["nginx"].PullSecrets[0].Name)
	}
}

func TestNamesOfCopiesFit(t *testing.T) {
	source := secret(strings.Repeat("a", 253), nil)
	p := compute(t, Snapshot{Job: job(withSecret, protected, func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{source.Name} }),
		Secrets: Secrets{Namespace: config, NamespaceReady: true, Sources: map[string]*corev1.Secret{source.Name: source}}, Now: now})
	assert.Len(t, p.Steps[0].Actions[0].Object.GetName(), 253)
}

// Node agents know whose a copy is by this annotation.
func TestAgentsReadTheSourceOfCopies(t *testing.T) {
	assert.Equal(t, nodeimage.SecretSourceAnnotation, v1beta1.SecretSourceAnnotation)
}
