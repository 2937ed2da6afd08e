package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	coreconversion "github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func TestWhatMayChange(t *testing.T) {
	old := valid(parallel)
	set := valid(parallel, func(s *set) {
		s.Spec.Replicas, s.Spec.RevisionHistoryLimit, s.Spec.MinReadySeconds = new(int32(9)), new(int32(9)), 9
		s.Spec.Ordinals = &v1beta1.StatefulSetOrdinals{Start: 9}
		s.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		s.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(9)}
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{FinalizersHandler: []string{"example.com/a"}}}
		s.Spec.PersistentVolumeClaimRetentionPolicy = &retention{WhenDeleted: deletes, WhenScaled: deletes}
		s.Spec.VolumeClaimTemplates = nil
		s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnClaimDelete
		s.Spec.ScaleStrategy = &v1beta1.StatefulSetScaleStrategy{MaxUnavailable: number(1)}
		s.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	})
	assert.Empty(t, texts(Validate(set, old, Facts{FeatureGates: FeatureGates{AutoResizePVC: true}})))
}

func TestWhatNeverChanges(t *testing.T) {
	cases := []struct {
		name   string
		change func(*set)
		want   string
	}{
		{"selector", func(s *set) {
			s.Spec.Selector.MatchLabels["tier"], s.Spec.Template.Labels = "a", map[string]string{"app": "web", "tier": "a"}
		}, "but 'selector' changed"},
		{"service", func(s *set) { s.Spec.ServiceName = "other" }, "but 'serviceName' changed"},
		{"policy", parallel, "but 'podManagementPolicy' changed"},
		{"two at once", all(parallel, func(s *set) { s.Spec.ServiceName = "other" }), "but 'serviceName' and 'podManagementPolicy' changed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			errs := texts(Validate(valid(c.change), valid(), Facts{}))
			require.Len(t, errs, 1)
			assert.True(t, strings.HasPrefix(errs[0], "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "), errs[0])
			assert.Contains(t, errs[0], c.want)
		})
	}
}

func TestAnAbsentPolicyIsOrderedReady(t *testing.T) {
	absent := func(s *set) { s.Spec.PodManagementPolicy = "" }
	assert.Empty(t, Validate(valid(), valid(absent), Facts{}))
}

func TestOldFaultsDoNotStandInTheWay(t *testing.T) {
	faulty := func(s *set) {
		s.Name, s.Spec.ServiceName = "web.v2", "Web"
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{}}
	}
	scaled := func(s *set) { s.Spec.Replicas = new(int32(5)) }
	assert.Empty(t, texts(Validate(valid(faulty, scaled), valid(faulty), Facts{})))
}

func TestInPlaceOnlyRefusesWhatNeedsNewPods(t *testing.T) {
	only := inPlace(v1beta1.InPlaceOnly)
	cases := []struct {
		name   string
		change func(*set)
		want   string
	}{
		{"an image", func(s *set) { s.Spec.Template.Spec.Containers[0].Image = "nginx:2" }, ""},
		{"an annotation", func(s *set) { s.Spec.Template.Annotations = map[string]string{"a": "b"} }, ""},
		{"a command", func(s *set) { s.Spec.Template.Spec.Containers[0].Command = []string{"run"} }, "spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/command"},
		{"the image of an init container", func(s *set) { s.Spec.Template.Spec.InitContainers[0].Image = "busybox:2" }, "spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found replace /initContainers/0/image"},
		{"the image of a native sidecar", func(s *set) { s.Spec.Template.Spec.InitContainers[1].Image = "proxy" }, ""},
		{"the command of a native sidecar", func(s *set) {
			s.Spec.Template.Spec.InitContainers[1].Image, s.Spec.Template.Spec.InitContainers[1].Command = "proxy:2", []string{"run"}
		}, "but found add /initContainers/1/command"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			init := func(s *set) {
				s.Spec.Template.Spec.InitContainers = []corev1.Container{
					{Name: "init", Image: "busybox:1"}, {Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
				}
			}
			errs := texts(Validate(valid(only, init, c.change), valid(only, init), Facts{}))
			if c.want == "" {
				assert.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			assert.Contains(t, errs[0], c.want)
		})
	}
}

func TestV1alpha1LosesNothingUnasked(t *testing.T) {
	reserved := func(s *set) { s.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)} }
	errs := texts(Validate(valid(), valid(reserved), Facts{Version: "v1alpha1"}))
	require.Len(t, errs, 1)
	assert.Equal(t, "spec.reserveOrdinals: Forbidden: v1alpha1 cannot express reserveOrdinals, and this update would remove it: "+
		`keep annotation apps.kruise.io/v1beta1-fields, use v1beta1, or set annotation apps.kruise.io/accept-v1alpha1-loss to "true"`, errs[0])

	accepted := func(s *set) { s.Annotations = map[string]string{coreconversion.AcceptLossAnnotation: "true"} }
	assert.Empty(t, Validate(valid(accepted), valid(reserved), Facts{Version: "v1alpha1"}))
	assert.Empty(t, Validate(valid(), valid(reserved), Facts{Version: "v1beta1"}), "v1beta1 says what it means")
}

// claims are the templates data, of class fast, and log, whose class is not named.
func claims(change func(data, log *corev1.PersistentVolumeClaim)) func(*set) {
	return func(s *set) {
		s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "2Gi"), gen.Claim("log", "2Gi")}
		s.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = new("fast")
		if change != nil {
			change(&s.Spec.VolumeClaimTemplates[0], &s.Spec.VolumeClaimTemplates[1])
		}
	}
}

func resized(claim *corev1.PersistentVolumeClaim, size string) {
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func TestClaimsThatFollowTheirTemplates(t *testing.T) {
	const path = "spec.volumeClaimTemplates"
	type claim = corev1.PersistentVolumeClaim
	grow := func(data, _ *claim) { resized(data, "3Gi") }
	fast := func(c Class) map[string]Class { return map[string]Class{"data": c} }
	cases := []struct {
		name    string
		change  func(*set)
		classes map[string]Class
		want    []string
	}{
		{"nothing changes", claims(nil), nil, nil},
		{"a template goes", func(s *set) {
			claims(nil)(s)
			s.Spec.VolumeClaimTemplates = s.Spec.VolumeClaimTemplates[:1]
		}, nil, []string{path + ": Invalid value: 1: templates cannot be added or deleted when volumeClaimUpdateStrategy is OnPodRollingUpdate"}},
		{"a template is renamed", claims(func(data, _ *claim) { data.Name = "store" }), nil, []string{path + "[data].name: Forbidden: a template cannot be renamed"}},
		{"another class", claims(func(data, _ *claim) { data.Spec.StorageClassName = new("slow") }), nil, []string{path + `[data]: Invalid value: "data": storage class and access modes cannot be modified`}},
		{"no class any more", claims(func(data, _ *claim) { data.Spec.StorageClassName = nil }), nil, nil},
		{"other access modes", claims(func(data, _ *claim) {
			data.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), nil, []string{path + `[data]: Invalid value: "data": storage class and access modes cannot be modified`}},
		{"the same size in other words", claims(func(data, _ *claim) { resized(data, "2048Mi") }), nil, nil},
		{"a label", claims(func(data, _ *claim) { data.Labels = map[string]string{"a": "b"} }), nil, nil},
		{"growing", claims(grow), fast(Class{Name: "fast", Expandable: true}), nil},
		{"growing where nothing grows", claims(grow), fast(Class{Name: "fast"}), []string{path + "[data].spec.resources.requests.storage: Forbidden: storage class fast does not support volume expansion"}},
		{"another limit where nothing grows", claims(func(data, _ *claim) {
			data.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("9Gi")}
		}), fast(Class{Name: "fast"}), []string{path + "[data].spec.resources.requests.storage: Forbidden: "}},
		{"shrinking where nothing grows", claims(func(data, _ *claim) { resized(data, "1Gi") }), fast(Class{Name: "fast"}), []string{path + "[data].spec.resources.requests.storage: Forbidden: "}},
		{"shrinking", claims(func(data, _ *claim) { resized(data, "1Gi") }), fast(Class{Name: "fast", Expandable: true}), nil},
		{"growing without a class", claims(grow), fast(Class{}), nil},
		{"a class that cannot be read", claims(grow), fast(Class{Err: errors.New("not found")}), []string{path + `[data].spec.storageClassName: Invalid value: "fast": cannot get the StorageClass: not found`}},
		{
			"both grow and one cannot", claims(func(data, log *claim) {
				resized(data, "3Gi")
				resized(log, "3Gi")
			}),
			map[string]Class{"data": {Name: "fast", Expandable: true}, "log": {Name: "standard"}},
			[]string{path + "[log].spec.resources.requests.storage: Forbidden: storage class standard does not support volume expansion"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			errs := texts(Validate(valid(c.change), valid(claims(nil)), Facts{FeatureGates: FeatureGates{AutoResizePVC: true}, Classes: c.classes}))
			require.Len(t, errs, len(c.want), errs)
			for i := range errs {
				assert.True(t, strings.HasPrefix(errs[i], c.want[i]), errs[i])
			}
		})
	}
}

func TestTheNewStrategySaysWhetherClaimsFollow(t *testing.T) {
	fewer := func(s *set) { s.Spec.VolumeClaimTemplates = s.Spec.VolumeClaimTemplates[:1] }
	follow := func(how v1beta1.VolumeClaimUpdateStrategyType) func(*set) {
		return func(s *set) { s.Spec.VolumeClaimUpdateStrategy.Type = how }
	}
	facts := Facts{FeatureGates: FeatureGates{AutoResizePVC: true}}
	assert.Empty(t, Validate(valid(follow(v1beta1.OnClaimDelete), fewer), valid(follow(v1beta1.OnPodRollingUpdate)), facts))
	assert.Len(t, Validate(valid(follow(v1beta1.OnPodRollingUpdate), fewer), valid(follow(v1beta1.OnClaimDelete)), facts), 1)
	assert.Empty(t, Validate(valid(follow(v1beta1.OnPodRollingUpdate), fewer), valid(), Facts{}), "the feature gate is off")
}

// A reader without a cluster: whoever is asked panics.
func TestNobodyIsAskedAboutWhatDoesNotChange(t *testing.T) {
	cases := []struct {
		name         string
		featureGates FeatureGates
		now, old     func(*set)
	}{
		{"replicas", FeatureGates{AutoResizePVC: true}, all(claims(nil), func(s *set) { s.Spec.Replicas = new(int32(9)) }), claims(nil)},
		{"claims that follow nothing", FeatureGates{}, claims(func(data, _ *corev1.PersistentVolumeClaim) { resized(data, "3Gi") }), claims(nil)},
		{"metadata of claims", FeatureGates{AutoResizePVC: true}, claims(func(data, _ *corev1.PersistentVolumeClaim) { data.Labels = map[string]string{"a": "b"} }), claims(nil)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			facts, err := Reader{FeatureGates: c.featureGates}.Read(t.Context(), valid(c.now), valid(c.old), "v1beta1")
			require.NoError(t, err)
			assert.Empty(t, facts.Classes)
		})
	}
}
