package revision

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// workload is what testdata tells of a workload.
type workload struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
	CurrentRevision, UpdateRevision   string
	Template                          corev1.PodTemplateSpec
}

func (w workload) kind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(w.APIVersion, w.Kind)
}

func (w workload) owner() metav1.Object {
	return &metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, UID: w.UID}
}

func (w workload) absent() podspec.DefaultPullPolicy {
	if w.Kind == "DaemonSet" {
		return podspec.ServerDefault
	}
	return podspec.PullAlways
}

func (w workload) owned(all []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	var list []*appsv1.ControllerRevision
	for _, r := range all {
		if metav1.IsControlledBy(r, w.owner()) {
			list = append(list, r)
		}
	}
	return list
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(text, into))
}

func stored(t *testing.T) (workloads []workload, revisions []*appsv1.ControllerRevision) {
	t.Helper()
	load(t, "testdata/workloads.yaml", &workloads)
	load(t, "testdata/revisions.yaml", &revisions)
	require.Len(t, workloads, 4)
	require.Len(t, revisions, 7)
	return workloads, revisions
}

// undefaulted is the templates as their authors wrote them.
func undefaulted(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	written := corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta}
	written.Spec.NodeSelector, written.Spec.ReadinessGates = template.Spec.NodeSelector, template.Spec.ReadinessGates
	for _, c := range template.Spec.Containers {
		written.Spec.Containers = append(written.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return written
}

func defaulted(template corev1.PodTemplateSpec, absent podspec.DefaultPullPolicy) corev1.PodTemplateSpec {
	template = *template.DeepCopy()
	podspec.Default(&template.Spec, absent)
	return template
}

func timed(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.CreationTimestamp = metav1.NewTime(gen.Epoch())
	return template
}

func TestTakingOverStartsNothing(t *testing.T) {
	workloads, revisions := stored(t)
	for _, w := range workloads {
		forms := map[string]corev1.PodTemplateSpec{
			"as stored":   w.Template,
			"undefaulted": undefaulted(w.Template),
			"defaulted":   defaulted(w.Template, w.absent()),
			"timed":       timed(w.Template),
		}

		for _, withoutNull := range []bool{false, true} {
			owned := w.owned(revisions)
			if withoutNull {
				owned = withoutTimestamps(t, owned)
			}
			for name, template := range forms {
				t.Run(fmt.Sprintf("%s %s, revisions without null %t", w.Name, name, withoutNull), func(t *testing.T) {
					before := template.DeepCopy()
					noClaims := ""
					choice, err := Choose(Input{
						Owner: w.owner(), Kind: w.kind(), Template: &template, DefaultPullPolicy: w.absent(), ClaimsHash: &noClaims,
						Owned: owned, Current: w.CurrentRevision,
					})
					require.NoError(t, err)
					assert.False(t, choice.Create || choice.Renumber || choice.SetClaimsHash, "something would be written")
					assert.Equal(t, Hash(choice.Update), hashIn(w.UpdateRevision))
					assert.Equal(t, choice.Update.Revision, choice.Number)
					assert.Zero(t, choice.CollisionCount)
					assert.Same(t, choice.Update, owned[len(owned)-1])
					if w.CurrentRevision != "" {
						assert.Equal(t, w.CurrentRevision, choice.Current.Name)
					}
					assert.Equal(t, before, &template, "the template was changed")
				})
			}
		}
	}
}

func hashIn(name string) string {
	return Hash(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// withoutTimestamps is the revisions as written by Kubernetes' libraries from 1.34 on.
func withoutTimestamps(t *testing.T, revisions []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	t.Helper()
	list := make([]*appsv1.ControllerRevision, len(revisions))
	for i, r := range revisions {
		list[i] = r.DeepCopy()
		list[i].Data.Raw = bytes.Replace(r.Data.Raw, []byte(`"creationTimestamp":null,`), nil, 1)
		require.NotEqual(t, r.Data.Raw, list[i].Data.Raw)
	}
	return list
}

// The names that OpenKruise gave follow from the templates, so the data, the hash and the name that
// New makes are the same to the byte.
func TestNewEqualsWhatIsStored(t *testing.T) {
	workloads, revisions := stored(t)
	for _, w := range workloads {
		if w.Kind == "DaemonSet" {
			continue // its names hash the Go structs of the time, which cannot be made again
		}
		for _, r := range w.owned(revisions) {
			t.Run(r.Name, func(t *testing.T) {
				template, err := Template(r)
				require.NoError(t, err)
				again, err := New(w.owner(), w.kind(), template, r.Revision, 0)
				require.NoError(t, err)
				assert.JSONEq(t, string(r.Data.Raw), string(again.Data.Raw))
				assert.Equal(t, r.Name, again.Name)
				assert.Equal(t, r.Namespace, again.Namespace)
				assert.Equal(t, r.Labels, again.Labels)
				assert.Equal(t, r.OwnerReferences, again.OwnerReferences)
				assert.Equal(t, r.Revision, again.Revision)
				assert.Equal(t, r.Labels[contract.RevisionHashLabel], Hash(again))
			})
		}
	}
}

func TestRollbackRaisesTheStoredRevision(t *testing.T) {
	workloads, revisions := stored(t)
	for _, w := range workloads {
		owned := w.owned(revisions)
		if len(owned) < 2 {
			continue
		}
		t.Run(w.Name, func(t *testing.T) {
			former, err := Template(owned[0])
			require.NoError(t, err)
			written := undefaulted(*former)
			choice, err := Choose(Input{
				Owner: w.owner(), Kind: w.kind(), Template: &written, DefaultPullPolicy: w.absent(), Owned: owned, Current: w.CurrentRevision,
			})
			require.NoError(t, err)
			assert.Same(t, owned[0], choice.Update)
			assert.True(t, choice.Renumber)
			assert.Equal(t, int64(3), choice.Number)
			assert.False(t, choice.Create)
		})
	}
}

func TestChangedImageIsANewRevision(t *testing.T) {
	workloads, revisions := stored(t)
	for _, w := range workloads {
		t.Run(w.Name, func(t *testing.T) {
			w.Template.Spec.Containers[0].Image = "nginx:1.16.0"
			owned := w.owned(revisions)
			choice, err := Choose(Input{
				Owner: w.owner(), Kind: w.kind(), Template: &w.Template, DefaultPullPolicy: w.absent(), Owned: owned, Current: w.CurrentRevision,
			})
			require.NoError(t, err)
			assert.True(t, choice.Create)
			assert.Equal(t, int64(len(owned)+1), choice.Update.Revision)
			assert.Equal(t, choice.Number, choice.Update.Revision)
		})
	}
}
