package imagepulljob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

var errAway = errors.New("the server does not answer")

func notFound(name string) error { return apierrors.NewNotFound(schema.GroupResource{}, name) }

// cluster is the world as the passes read it: the caches, the server behind them, and the clock.
type cluster struct {
	client.Reader
	*world
}

func (s cluster) Now() time.Time                  { return s.at }
func (s cluster) Since(t time.Time) time.Duration { return s.at.Sub(t) }

func (s cluster) Job(_ context.Context, key types.NamespacedName) (*v1beta1.ImagePullJob, error) {
	if job := s.jobs[key]; job != nil {
		return job, nil
	}
	return nil, notFound(key.Name)
}

func (s cluster) NodeImage(_ context.Context, name string) (*nodeimage.NodeImage, error) {
	if o := s.images[name]; o != nil {
		return o, nil
	}
	return nil, notFound(name)
}

func (s cluster) NodeImages(context.Context) (all []*nodeimage.NodeImage, err error) {
	for _, o := range s.images { // in any order, as from a cache
		all = append(all, o)
	}
	return all, nil
}

func (s cluster) NodeImagesOf(_ context.Context, job types.UID) (found []*nodeimage.NodeImage, err error) {
	for _, o := range s.images {
		if slices.Contains(owners(o), string(job)) {
			found = append(found, o)
		}
	}
	return found, nil
}

func (s cluster) Nodes(context.Context) (all []*corev1.Node, known bool, err error) {
	for _, node := range s.nodes {
		all = append(all, node)
	}
	return all, !s.unknown, nil
}

func (s cluster) Secret(_ context.Context, name string) (*corev1.Secret, error) {
	if secret := s.secrets[types.NamespacedName{Namespace: copiesIn, Name: name}]; secret != nil {
		return secret, nil
	}
	return nil, notFound(name)
}

func (s cluster) Copies(_ context.Context, key string) (found []*corev1.Secret, err error) {
	for _, at := range s.copyKeys() {
		if slices.Contains(copyKeys(s.secrets[at]), key) {
			found = append(found, s.secrets[at])
		}
	}
	return found, nil
}

func (s cluster) Lacking(context.Context) []string { return s.lacking }

// Get reads pull secrets and the namespace of their copies from the server.
func (s cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s.away {
		return errAway
	}
	switch into := into.(type) {
	case *corev1.Secret:
		secret := s.secrets[key]
		if secret == nil {
			return notFound(key.Name)
		}
		secret.DeepCopyInto(into)
	case *corev1.Namespace:
		require.Equal(s, copiesIn, key.Name)
		if s.going {
			into.DeletionTimestamp = new(metav1.NewTime(s.at))
		}
	default:
		require.Fail(s, "an unknown read", "%T %s", into, key)
	}
	return nil
}

// List reads pods, a copy of a secret, and whether there are nodes.
func (s cluster) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	if s.away {
		return errAway
	}
	o := client.ListOptions{}
	o.ApplyOptions(options)
	switch list := list.(type) {
	case *corev1.PodList:
		require.Equal(s, gen.Namespace, o.Namespace)
		list.Items = s.pods
	case *metav1.PartialObjectMetadataList:
		switch list.Kind {
		case "NodeList":
			list.Items = make([]metav1.PartialObjectMetadata, len(s.nodes))
		case "SecretList":
			name, _ := o.FieldSelector.RequiresExactMatch("metadata.name")
			if s.secrets[types.NamespacedName{Namespace: o.Namespace, Name: name}] != nil {
				list.Items = make([]metav1.PartialObjectMetadata, 1)
			}
		default:
			require.Fail(s, "an unknown read", list.Kind)
		}
	}
	return nil
}

// write is the server.
func (w *world) write(a *action.Action) error {
	what := fmt.Sprintf("%s %s: %s %s", w.busy, w.busy.UID, a.Verb, a.Target()) // what is made anew under a name begins anew (G15)
	_, ofCopies := a.Object.(*corev1.Secret)
	if a.Verb == w.refused || ofCopies && slices.Contains(w.lacking, strings.ToLower(string(a.Verb))) {
		require.NoError(w, w.tries.Refused(what, w.at))
		return apierrors.NewForbidden(schema.GroupResource{}, a.Object.GetName(), errKilled)
	}
	w.tries.Taken(what)
	switch o := a.Object.(type) {
	case *v1beta1.ImagePullJob:
		return w.writeJob(a, o)
	case *nodeimage.NodeImage:
		return w.writeImage(a, o)
	case *corev1.Secret:
		return w.writeSecret(a, o)
	}
	require.Fail(w, "an unknown write", "%s", a)
	return nil
}

func conflict(name string) error {
	return apierrors.NewConflict(schema.GroupResource{}, name, errors.New("it has changed"))
}

func (w *world) writeJob(a *action.Action, o *v1beta1.ImagePullJob) error {
	key := client.ObjectKeyFromObject(o)
	job := w.jobs[key]
	if job == nil || job.ResourceVersion != o.ResourceVersion {
		return conflict(o.Name)
	}
	if a.Verb == action.Delete {
		ttl := time.Duration(*job.Spec.CompletionPolicy.TTLSecondsAfterFinished) * time.Second
		require.False(w, w.at.Before(job.Status.CompletionTime.Add(ttl)), "the job is deleted too early")
		w.deleteJob(key)
		return nil
	}
	require.Equal(w, action.PatchMetadata, a.Verb)
	w.edit(key, func(job *v1beta1.ImagePullJob) { patch(w, a, job) })
	return nil
}

func (w *world) deleteJob(key types.NamespacedName) {
	w.edit(key, func(job *v1beta1.ImagePullJob) {
		if job.DeletionTimestamp == nil {
			job.DeletionTimestamp = new(metav1.NewTime(w.at))
		}
	})
}

// writeImage judges that a job has no more nodes pull than it allows (I-IPJ-1).
func (w *world) writeImage(a *action.Action, o *nodeimage.NodeImage) error {
	w.tried[o.Name] = true
	if w.odds(10) {
		w.agent(o.Name)
	}
	image := w.images[o.Name]
	if image == nil || image.ResourceVersion != o.ResourceVersion {
		return conflict(o.Name)
	}
	job := w.jobs[w.busy.NamespacedName]
	before, begins := w.pulling(job.UID), a.Reason == "Pull" && !slices.Contains(owners(image), string(job.UID))
	require.Equal(w, action.PatchSpec, a.Verb)
	image = image.DeepCopy()
	patch(w, a, image)
	w.stamp(image)
	w.images[o.Name] = image
	if begins {
		w.judgeOrder(o.Name)
	}
	if now := w.pulling(job.UID); now > before {
		require.LessOrEqual(w, now, limitOf(job), "too many nodes pull for job %s (I-IPJ-1)", w.busy.Name)
	}
	for i := range image.Spec.Images["nginx"].PullSecrets {
		require.Equal(w, copiesIn, image.Spec.Images["nginx"].PullSecrets[i].Namespace)
	}
	return nil
}

// judgeOrder holds that a node that is not ready does not begin before one that is. Nodes with refused writes are left out.
func (w *world) judgeOrder(name string) {
	if job := w.jobs[w.busy.NamespacedName]; !w.unknown && !w.refuses && !w.isReady(name) && !usesPods(job) {
		for other, o := range w.images {
			waits := !w.tried[other] && selects(job, other, o.Labels) && !slices.Contains(owners(o), string(job.UID))
			require.False(w, waits && w.isReady(other), "%s is not ready and begins before %s", name, other)
		}
	}
}

func (w *world) isReady(name string) bool {
	node := w.nodes[name]
	return node == nil || len(node.Status.Conditions) == 0 || node.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (w *world) writeSecret(a *action.Action, o *corev1.Secret) error {
	key := client.ObjectKeyFromObject(o)
	require.Equal(w, copiesIn, key.Namespace)
	secret := w.secrets[key]
	switch {
	case a.Verb == action.Create && secret != nil:
		return apierrors.NewAlreadyExists(schema.GroupResource{}, o.Name)
	case a.Verb == action.Create && w.going:
		return apierrors.NewForbidden(schema.GroupResource{}, o.Name, errKilled)
	case a.Verb == action.Create:
		secret = o.DeepCopy()
	case secret == nil || secret.ResourceVersion != o.ResourceVersion:
		return conflict(o.Name)
	case a.Verb == action.Delete:
		require.NotContains(w, secret.Annotations, "foreign", "a secret of others is deleted")
		delete(w.secrets, key)
		return nil
	default:
		secret = secret.DeepCopy()
		patch(w, a, secret)
	}
	require.NotContains(w, secret.Annotations, "foreign", "a secret of others is changed")
	w.stamp(secret)
	w.secrets[key] = secret
	return nil
}

// patch applies the patch of an action.
func patch(w *world, a *action.Action, o client.Object) {
	require.Len(w, a.Patches, 1)
	body, err := json.Marshal(a.Patches[0].Body)
	require.NoError(w, err)
	before, err := json.Marshal(o)
	require.NoError(w, err)
	after, err := jsonpatch.MergePatch(before, body)
	require.NoError(w, err)
	require.NotEqual(w, string(before), string(after), "a write without an effect: %s", a)
	empty(o)
	require.NoError(w, json.Unmarshal(after, o))
}

// empty empties an object, since decoding into one that is not empty adds to its maps.
func empty(o client.Object) {
	switch o := o.(type) {
	case *v1beta1.ImagePullJob:
		*o = v1beta1.ImagePullJob{}
	case *nodeimage.NodeImage:
		*o = nodeimage.NodeImage{}
	case *corev1.Secret:
		*o = corev1.Secret{}
	}
}

// agent brings the pulls of a node forward.
func (w *world) agent(name string) {
	old := w.images[name]
	if old == nil {
		return
	}
	o := old.DeepCopy()
	o.Status.ImageStatuses = map[string]nodeimage.ImageStatus{}
	for image, spec := range o.Spec.Images {
		var told []nodeimage.ImageTagStatus
		for _, tag := range spec.Tags {
			s := nodeimage.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: nodeimage.ImagePulling}
			for _, before := range old.Status.ImageStatuses[image].Tags {
				if before.Tag == tag.Tag && before.Version == tag.Version {
					s = before
				}
			}
			if s.CompletionTime == nil && (w.calm || w.IntN(2) == 0) {
				s.Phase, s.CompletionTime = nodeimage.ImageSucceeded, new(metav1.NewTime(w.at))
				if w.IntN(4) == 0 {
					s.Phase = nodeimage.ImageFailed
				}
			}
			told = append(told, s)
		}
		o.Status.ImageStatuses[image] = nodeimage.ImageStatus{Tags: told}
	}
	w.stamp(o)
	w.images[name] = o
}

// disturb is what users, others and the weather do.
func (w *world) disturb() {
	key := types.NamespacedName{Namespace: gen.Namespace, Name: []string{"a", "b"}[w.IntN(2)]}
	names := slices.Sorted(maps.Keys(w.images))
	some := ""
	if len(names) > 0 {
		some = names[w.IntN(len(names))]
	}
	source := types.NamespacedName{Namespace: gen.Namespace, Name: "registry"}
	switch w.IntN(14) {
	case 0:
		w.addNode()
	case 1:
		delete(w.images, some)
		if w.IntN(2) == 0 {
			delete(w.nodes, some)
		}
	case 2:
		w.editSpec(key, func(spec *v1beta1.ImagePullJobSpec) { spec.Parallelism = new(intstr.FromInt(w.IntN(4))) })
	case 3:
		w.editSpec(key, func(spec *v1beta1.ImagePullJobSpec) {
			spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(1 + w.IntN(3)))}
		})
	case 4:
		w.editSpec(key, func(spec *v1beta1.ImagePullJobSpec) { spec.Image = []string{"nginx:1.25", "redis"}[w.IntN(2)] })
	case 5:
		w.putSecret(source)
	case 6:
		delete(w.secrets, source)
	case 7:
		w.going, w.away = w.IntN(3) == 0, w.IntN(3) == 0
	case 8:
		w.lacking = [][]string{nil, nil, {"create", "delete"}}[w.IntN(3)]
	case 9:
		w.refuses = w.refuses || w.refused == action.PatchSpec
		w.refused = []action.Verb{"", "", action.Create, action.Delete, action.PatchSpec, action.PatchMetadata}[w.IntN(6)]
	case 10:
		w.unknown = w.IntN(3) == 0
		if some != "" {
			ready := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}[w.IntN(3)]
			w.nodes[some] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: some}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
			}}
		}
	case 11:
		if w.jobs[key] == nil {
			w.addJob(key.Name)
		} else if w.IntN(3) == 0 {
			w.deleteJob(key)
		}
	case 12:
		w.meddle(key)
	}
}

// meddle is somebody who writes what is the operator's.
func (w *world) meddle(key types.NamespacedName) {
	switch copies := w.copyKeys(); {
	case w.IntN(3) == 0:
		w.edit(key, func(job *v1beta1.ImagePullJob) { job.Finalizers = nil })
	case len(copies) > 0:
		delete(w.secrets, copies[w.IntN(len(copies))])
	default:
		names := plan.CopyNames(types.NamespacedName{Namespace: gen.Namespace, Name: "registry"})
		w.putSecret(types.NamespacedName{Namespace: copiesIn, Name: names[w.IntN(len(names)-1)]})
	}
}

// putSecret makes a secret, or changes its content.
func (w *world) putSecret(key types.NamespacedName) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{"foreign": "yes"}},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: fmt.Append(nil, w.uids)},
	}
	if old := w.secrets[key]; old != nil && w.IntN(2) == 0 {
		secret.UID = old.UID
	} else if w.IntN(3) == 0 {
		secret.Type, secret.Data = corev1.SecretTypeDockercfg, map[string][]byte{corev1.DockerConfigKey: fmt.Append(nil, w.uids)}
	}
	w.stamp(secret)
	w.secrets[key] = secret
}
