package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// dice make random worlds.
type dice struct{ *rand.Rand }

func (d dice) once(in int) bool { return d.IntN(in) == 0 }

func (d dice) tag(name string) v1beta1.ImageTagSpec {
	t := tag(name, asked(time.Duration(d.IntN(40))*time.Minute), version(d.Int64N(3)))
	t.PullPolicy.TTLSecondsAfterFinished = new(int32(1 + d.IntN(1200))) // an entry without any time to live goes a pass after its end
	if d.once(3) {
		t.PullPolicy.ActiveDeadlineSeconds = new(d.Int64N(900))
	}
	for range d.IntN(3) {
		t.OwnerReferences = append(t.OwnerReferences, corev1.ObjectReference{
			APIVersion: "apps.kruise.io/v1beta1", Kind: []string{"ImagePullJob", "CloneSet"}[d.IntN(2)],
			Name: fmt.Sprint("job-", d.IntN(3)), UID: types.UID(fmt.Sprint("uid-", d.IntN(2))),
		})
	}
	if d.once(9) {
		t.CreatedAt = nil
	}
	return t
}

func (d dice) state(name string) v1beta1.ImageTagStatus {
	s := state(name, []v1beta1.ImagePullPhase{v1beta1.ImageWaiting, v1beta1.ImagePulling}[d.IntN(2)])
	if d.once(2) {
		s = ended(name, time.Duration(d.IntN(1200))*time.Second)
	}
	s.Version = d.Int64N(3)
	return s
}

func jobNamed(name string, uid types.UID) Job { return Job{types.NamespacedName{Name: name}, uid} }

func (d dice) world() Snapshot {
	s := Snapshot{
		Name: "n1", Now: now, CreationDelay: delay, Image: nodeImage(),
		Jobs: map[Job]bool{}, Secrets: map[types.NamespacedName]bool{},
	}
	if !d.once(5) {
		s.Node = node()
	}
	for _, name := range []string{"job-0", "job-1"} {
		there := d.IntN(3) // one of two that had the name, or none
		for i := range 2 {
			s.Jobs[jobNamed(name, types.UID(fmt.Sprint("uid-", i)))] = i == there
		}
	}
	for i := range 2 {
		s.Secrets[types.NamespacedName{Name: fmt.Sprint("secret-", i)}] = d.once(2)
	}
	s.Image.Spec.Images, s.Image.Status.ImageStatuses = map[string]v1beta1.ImageSpec{}, map[string]v1beta1.ImageStatus{}
	for _, image := range []string{"nginx", "redis"} {
		var spec v1beta1.ImageSpec
		var states []v1beta1.ImageTagStatus
		for _, name := range []string{"1", "2", "3"} {
			if d.once(2) {
				spec.Tags = append(spec.Tags, d.tag(name))
			}
			if d.once(2) {
				states = append(states, d.state(name))
			}
		}
		for i := range d.IntN(4) {
			mode := []v1beta1.SecretMode{"", v1beta1.SecretBatch}[d.IntN(2)]
			spec.PullSecrets = append(spec.PullSecrets, v1beta1.SecretReference{Name: fmt.Sprint("secret-", i), Mode: mode})
		}
		s.Image.Spec.Images[image] = spec
		s.Image.Status.ImageStatuses[image] = v1beta1.ImageStatus{Tags: states}
	}
	return s
}

// after returns the world once the plan has been carried out.
func after(t *testing.T, s Snapshot, p Plan) Snapshot {
	t.Helper()
	s.Image = s.Image.DeepCopy()
	if p.Status != nil {
		s.Image.Status = *p.Status.DeepCopy()
	}
	body := patchOf(t, p)
	if body == nil {
		return s
	}
	before, err := json.Marshal(s.Image)
	require.NoError(t, err)
	patch, err := json.Marshal(body)
	require.NoError(t, err)
	merged, err := jsonpatch.MergePatch(before, patch)
	require.NoError(t, err)
	s.Image = &v1beta1.NodeImage{}
	require.NoError(t, json.Unmarshal(merged, s.Image))
	return s
}

func TestInvariants(t *testing.T) {
	seeds.Each(t, 5000, func(t *testing.T, seed uint64) {
		t.Helper()
		before := dice{rand.New(rand.NewPCG(seed, seed))}.world()
		unchanged := before.Image.DeepCopy()
		p := Compute(before)
		require.Equal(t, unchanged, before.Image, "a plan changes nothing by itself")
		if before.Node == nil {
			require.Equal(t, "delete", p.Steps[0].Name)
			return
		}
		once := after(t, before, p)
		nothingIsAdded(t, before, once)
		nothingWantedIsDropped(t, before, once)

		second := Compute(once)
		require.True(t, second.Empty(), "a second plan has nothing left to write")
		settled := after(t, once, second)
		endsAreKept(t, once, settled)
		nobodyWaitsForEver(t, settled, second)
		noCredentialOutlivesItsSecret(t, settled)
	})
}

// nothingIsAdded: pulls are asked for by others.
func nothingIsAdded(t *testing.T, before, after Snapshot) {
	t.Helper()
	was := tally.Wanted(&before.Image.Spec)
	for key := range tally.Wanted(&after.Image.Spec) {
		require.True(t, was[key], key)
	}
}

// nothingWantedIsDropped: a tag that goes has no time of creation, lost its last job, or is past its life.
func nothingWantedIsDropped(t *testing.T, before, after Snapshot) {
	t.Helper()
	left := tally.Wanted(&after.Image.Spec)
	ended := completions(before.Image)
	for name, image := range before.Image.Spec.Images {
		for _, tag := range image.Tags {
			key := tally.Key{Image: name, Tag: tag.Tag, Version: tag.Version}
			if left[key] || tag.CreatedAt == nil {
				continue
			}
			alive := len(tag.OwnerReferences) == 0
			for _, owner := range tag.OwnerReferences {
				there, known := before.Jobs[jobNamed(owner.Name, owner.UID)]
				alive = alive || owner.Kind != "ImagePullJob" || !known || there
			}
			at, over := ended[key]
			over = over && now.Sub(at) >= time.Duration(*tag.PullPolicy.TTLSecondsAfterFinished)*time.Second
			require.True(t, !alive || over, "%v was dropped", key)
		}
	}
}

// endsAreKept: what has ended keeps its result, and what is given up has ended.
func endsAreKept(t *testing.T, before, after Snapshot) {
	t.Helper()
	wanted := tally.Wanted(&after.Image.Spec)
	results := map[tally.Key]v1beta1.ImageTagStatus{}
	for name, image := range after.Image.Status.ImageStatuses {
		for _, state := range image.Tags {
			key := tally.Key{Image: name, Tag: state.Tag, Version: state.Version}
			require.True(t, wanted[key], "%v is a leftover", key)
			require.True(t, state.Phase != v1beta1.ImageFailed || state.CompletionTime != nil, "%v has no end", key)
			results[key] = state
		}
	}
	for name, image := range before.Image.Status.ImageStatuses {
		for _, state := range image.Tags {
			key := tally.Key{Image: name, Tag: state.Tag, Version: state.Version}
			if wanted[key] && state.CompletionTime != nil {
				require.Equal(t, state, results[key])
			}
		}
	}
	numbers := after.Image.Status
	require.Len(t, wanted, int(numbers.Desired))
	require.Len(t, results, int(numbers.Waiting+numbers.Pulling+numbers.Succeeded+numbers.Failed))
}

// nobodyWaitsForEver: a pull that the agent is silent about brings the manager back.
func nobodyWaitsForEver(t *testing.T, settled Snapshot, p Plan) {
	t.Helper()
	told := map[tally.Key]bool{}
	for name, image := range settled.Image.Status.ImageStatuses {
		for _, state := range image.Tags {
			told[tally.Key{Image: name, Tag: state.Tag, Version: state.Version}] = true
		}
	}
	for key := range tally.Wanted(&settled.Image.Spec) {
		require.True(t, told[key] || p.RequeueAfter > 0 && p.RequeueAfter <= agentTimeout, "%v is forgotten", key)
	}
}

// noCredentialOutlivesItsSecret: references without a mode go with their secret.
func noCredentialOutlivesItsSecret(t *testing.T, settled Snapshot) {
	t.Helper()
	for _, image := range settled.Image.Spec.Images {
		require.NotEmpty(t, image.Tags)
		for _, secret := range image.PullSecrets {
			there, known := settled.Secrets[types.NamespacedName{Name: secret.Name}]
			require.True(t, secret.Mode != "" || there || !known, secret)
		}
	}
}

func BenchmarkCompute(b *testing.B) {
	o := nodeImage()
	o.Spec.Images, o.Status.ImageStatuses = map[string]v1beta1.ImageSpec{}, map[string]v1beta1.ImageStatus{}
	for i := range v1beta1.MaxImagesPerNode {
		var spec v1beta1.ImageSpec
		var states v1beta1.ImageStatus
		for j := range 20 {
			spec.Tags = append(spec.Tags, tag(fmt.Sprint(j)))
			states.Tags = append(states.Tags, ended(fmt.Sprint(j), time.Minute))
		}
		name := fmt.Sprint("image-", i)
		o.Spec.Images[name], o.Status.ImageStatuses[name] = spec, states
	}
	s := Snapshot{Name: "n1", Node: node(), Image: o, Now: now, CreationDelay: delay}
	for b.Loop() {
		Compute(s)
	}
}
