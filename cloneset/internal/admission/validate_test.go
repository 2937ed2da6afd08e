package admission

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// valid is a CloneSet without fault, defaulted and then changed.
func valid(changes ...func(*v1beta1.CloneSet)) *v1beta1.CloneSet {
	set := &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "set"}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template.Labels = map[string]string{"app": "web"}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx:1"}}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateCloneSetStrategy{}
	Default(set)
	for _, change := range changes {
		change(set)
	}
	return set
}

func rolling(change func(*v1beta1.RollingUpdateCloneSetStrategy)) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { change(set.Spec.UpdateStrategy.RollingUpdate) }
}

func number(n int32) *intstr.IntOrString    { return new(intstr.FromInt32(n)) }
func text(value string) *intstr.IntOrString { return new(intstr.FromString(value)) }

func texts(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}

func TestValidateOneObject(t *testing.T) {
	type strategy = v1beta1.RollingUpdateCloneSetStrategy
	type set = v1beta1.CloneSet
	const spec, update = "spec.", "spec.updateStrategy.rollingUpdate."
	cases := []struct {
		name   string
		change func(*set)
		want   string // one error; empty means valid
	}{
		{"the defaults are valid", func(*set) {}, ""},
		{"negative replicas", func(s *set) { s.Spec.Replicas = new(int32(-1)) }, spec + "replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"negative history", func(s *set) { s.Spec.RevisionHistoryLimit = new(int32(-1)) }, spec + "revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"},
		{"negative minReadySeconds", func(s *set) { s.Spec.MinReadySeconds = -1 }, spec + "minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},

		{"no selector", func(s *set) { s.Spec.Selector = nil }, spec + "selector: Required value"},
		{"selector without a term", func(s *set) { s.Spec.Selector = &metav1.LabelSelector{} }, spec + `selector: Invalid value: {}: empty selector is invalid for cloneset`},
		{"selector of other pods", func(s *set) { s.Spec.Template.Labels = map[string]string{"app": "db"} }, spec + "template.metadata.labels: Invalid value: {\"app\":\"db\"}: `selector` does not match template `labels`"},

		{"restartPolicy Never", func(s *set) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever }, spec + `template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`},
		{"restartPolicy Always", func(s *set) { s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways }, ""},
		{"activeDeadlineSeconds", func(s *set) { s.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(9)) }, spec + "template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in cloneset is not Supported"},

		{"claim template twice", func(s *set) {
			s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("data"), claim("data")}
		}, spec + `volumeClaimTemplates[1].metadata.name: Duplicate value: "data"`},
		{"claim template without access modes", func(s *set) {
			s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi", func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = nil })}
		}, spec + "volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required"},
		{"claim template without a name", func(s *set) { s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim("")} }, spec + "volumeClaimTemplates[0].metadata.name: Required value"},

		{"pods to delete twice", func(s *set) { s.Spec.ScaleStrategy.PodsToDelete = []string{"a", "b", "a", "a"} }, spec + `scaleStrategy.podsToDelete: Invalid value: ["a","b","a","a"]: duplicated items [a]`},
		{"scale limit without %", func(s *set) { s.Spec.ScaleStrategy.MaxUnavailable = text("5") }, spec + `scaleStrategy.maxUnavailable: Invalid value: "5": must be a number or a percentage such as 20%`},
		{"negative scale limit", func(s *set) { s.Spec.ScaleStrategy.MaxUnavailable = number(-1) }, spec + "scaleStrategy.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"},
		{"decimal scale limit", func(s *set) { s.Spec.ScaleStrategy.MaxUnavailable = text("33.3%") }, ""},

		{"unknown type", func(s *set) { s.Spec.UpdateStrategy.Type = "Recreate" }, spec + `updateStrategy.type: Invalid value: "Recreate": must be 'RollingUpdate' or 'OnDelete'`},
		{"unknown policy", rolling(func(r *strategy) { r.PodUpdatePolicy = "Recreate" }), update + `podUpdatePolicy: Invalid value: "Recreate": must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'`},
		{"partition as a word", rolling(func(r *strategy) { r.Partition = text("abc") }), update + `partition: Invalid value: "abc": must be a number or a percentage such as 20%`},
		{"partition as text", rolling(func(r *strategy) { r.Partition = text("5") }), update + `partition: Invalid value: "5": must be a number or a percentage such as 20%`},
		{"partition of no number", rolling(func(r *strategy) { r.Partition = text("x%") }), update + `partition: Invalid value: "x%": must be a number or a percentage such as 20%`},
		{"negative partition", rolling(func(r *strategy) { r.Partition = number(-1) }), update + "partition: Invalid value: -1: must be greater than or equal to 0"},
		{"negative percentage", rolling(func(r *strategy) { r.Partition = text("-5%") }), update + `partition: Invalid value: "-5%": must be greater than or equal to 0`},
		{"decimal partition", rolling(func(r *strategy) { r.Partition = text("33.3%") }), ""},
		{"maxUnavailable as text", rolling(func(r *strategy) { r.MaxUnavailable = text("1") }), update + `maxUnavailable: Invalid value: "1": must be a number or a percentage such as 20%`},
		{"maxSurge as text", rolling(func(r *strategy) { r.MaxSurge = text("1") }), update + `maxSurge: Invalid value: "1": must be a number or a percentage such as 20%`},
		{"more than all", rolling(func(r *strategy) { r.MaxUnavailable = text("120%") }), ""},
		{"surge alone", rolling(func(r *strategy) { r.MaxUnavailable, r.MaxSurge = number(0), number(1) }), ""},
		{"no way to move", rolling(func(r *strategy) { r.MaxUnavailable = text("0%") }), update + `maxUnavailable: Invalid value: "0%": maxUnavailable and maxSurge should not both be less than 1`},
		{"no way to move and no pods", func(s *set) {
			s.Spec.Replicas, s.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(int32(0)), number(0)
		}, ""},
		{"surge in place only", rolling(func(r *strategy) { r.PodUpdatePolicy, r.MaxSurge = v1beta1.InPlaceOnly, text("10%") }), update + `maxSurge: Invalid value: "10%": can not use maxSurge with podUpdatePolicy InPlaceOnly`},
		{"surge of nothing in place only", rolling(func(r *strategy) { r.PodUpdatePolicy, r.MaxSurge = v1beta1.InPlaceOnly, text("0%") }), ""},
		{"OnDelete with numbers that stand still", func(s *set) {
			s.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDelete, RollingUpdate: &strategy{MaxUnavailable: number(0)}}
		}, ""},
		{"priority of both kinds", rolling(func(r *strategy) {
			r.PriorityStrategy = &workload.UpdatePriorityStrategy{
				OrderPriority:  []workload.UpdatePriorityOrderTerm{{OrderedKey: "k"}},
				WeightPriority: []workload.UpdatePriorityWeightTerm{{Weight: 1, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
			}
		}), update + "priorityStrategy: Required value: only one of weightPriority and orderPriority can be used"},
		{"scatter without a key", rolling(func(r *strategy) { r.ScatterStrategy = workload.UpdateScatterStrategy{{Value: "v"}} }), update + "scatterStrategy: Required value: key should not be empty"},

		{"percentage of nodes", inPlaceStrategy(workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: text("10%")}), update + `inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value: "10%": imagePreDownloadParallelism does not support percentage value`},
		{"nodes as a word", inPlaceStrategy(workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: text("all")}), update + `inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value: "all": imagePreDownloadParallelism must be a valid integer`},
		{"nodes below zero", inPlaceStrategy(workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: text("-2")}), update + `inPlaceUpdateStrategy.imagePreDownloadParallelism: Invalid value: "-2": imagePreDownloadParallelism must be non-negative`},
		{"nodes as text", inPlaceStrategy(workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: text("2")}), ""},
		{"negative pre-download timeout", inPlaceStrategy(workload.InPlaceUpdateStrategy{ImagePreDownloadTimeoutSeconds: new(int32(-1))}), update + "inPlaceUpdateStrategy.imagePreDownloadTimeoutSeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"negative pre-download threshold", inPlaceStrategy(workload.InPlaceUpdateStrategy{ImagePreDownloadMinUpdatedReadyPods: new(int32(-1))}), update + "inPlaceUpdateStrategy.imagePreDownloadMinUpdatedReadyPods: Invalid value: -1: must be greater than or equal to 0"},
		{"negative grace period", inPlaceStrategy(workload.InPlaceUpdateStrategy{GracePeriodSeconds: -1}), update + "inPlaceUpdateStrategy.gracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0"},

		{"deadline before availability", deadline(10, 10), spec + "progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds"},
		{"negative deadline", deadline(-1, 0), spec + "progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"deadline after availability", deadline(11, 0), ""},
		{"no deadline", deadline(math.MaxInt32, math.MaxInt32), ""},

		{"hook label that no pod can carry", func(s *set) {
			s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{FinalizersHandler: []string{"no spaces/x"}}}
		}, spec + "lifecycle.preDelete.finalizersHandler"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := texts(Validate(valid(c.change), nil, Facts{Version: "v1beta1"}))
			if c.want == "" {
				assert.Empty(t, got)
			} else if assert.Len(t, got, 1) {
				assert.Contains(t, got[0], c.want)
			}
			assert.Empty(t, Validate(valid(c.change), valid(c.change), Facts{Version: "v1beta1"}), "a stored fault stops no update")
		})
	}
}

func claim(name string) corev1.PersistentVolumeClaim {
	return gen.Claim(name, "1Gi")
}

func inPlaceStrategy(in workload.InPlaceUpdateStrategy) func(*v1beta1.CloneSet) {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.InPlaceUpdateStrategy = &in })
}

func deadline(progress, minReady int32) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.ProgressDeadlineSeconds, set.Spec.MinReadySeconds = &progress, minReady
	}
}

func TestValidateSpeaksV1alpha1(t *testing.T) {
	cases := []struct {
		name   string
		change func(*v1beta1.RollingUpdateCloneSetStrategy)
		want   string
	}{
		{
			"unknown type", func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.PodUpdatePolicy = "Recreate" },
			"must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'",
		},
		{
			"surge in place only",
			func(r *v1beta1.RollingUpdateCloneSetStrategy) {
				r.PodUpdatePolicy, r.MaxSurge = v1beta1.InPlaceOnly, number(1)
			},
			"can not use maxSurge with strategy type InPlaceOnly",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := texts(Validate(valid(rolling(c.change)), nil, Facts{Version: "v1alpha1"}))
			if assert.Len(t, got, 1) {
				assert.Contains(t, got[0], c.want)
			}
		})
	}
}

func TestAStoredFaultMayNotGrow(t *testing.T) {
	stored := valid(func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = -1 })
	worse := valid(func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = -2 })
	assert.Len(t, Validate(worse, stored, Facts{}), 1)
}

func TestSelectorNeverChanges(t *testing.T) {
	changed := valid(func(s *v1beta1.CloneSet) {
		s.Spec.Selector.MatchLabels["tier"] = "front"
		s.Spec.Template.Labels["tier"] = "front"
	})
	assert.Equal(t, []string{
		"spec: Forbidden: updates to cloneset spec for fields other than 'replicas', 'template', 'lifecycle', 'scaleStrategy', " +
			"'updateStrategy', 'minReadySeconds', 'progressDeadlineSeconds', 'volumeClaimTemplates' and 'revisionHistoryLimit' are forbidden",
	}, texts(Validate(changed, valid(), Facts{})))
}

func TestPodsToDelete(t *testing.T) {
	controlled := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{UID: "set", Controller: new(uid == "set")}, {UID: "other", Controller: new(uid == "other")},
		}}}
	}
	terminating := controlled("set")
	terminating.DeletionTimestamp = &metav1.Time{}
	cases := []struct {
		name  string
		fact  PodFact
		want  string
		older string // in v1alpha1
	}{
		{"a pod of the set", PodFact{Pod: controlled("set")}, "", ""},
		{"no pod", PodFact{Err: apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")}, "pod a not found", `find pod a failed: pods "a" not found`},
		{"a pod that cannot be read", PodFact{Err: errors.New("timeout")}, "reading pod a failed: timeout", "find pod a failed: timeout"},
		{"a pod that goes already", PodFact{Pod: terminating}, "pod a is already being deleted", "find pod a already terminating"},
		{"a pod of another set", PodFact{Pod: controlled("other")}, "pod a does not belong to this CloneSet", "find pod a owner is not this CloneSet"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for version, want := range map[string]string{"v1beta1": c.want, "v1alpha1": c.older} {
				got := texts(Validate(valid(), valid(), Facts{Version: version, Pods: map[string]PodFact{"a": c.fact}}))
				if want == "" {
					assert.Empty(t, got)
				} else {
					assert.Equal(t, []string{`spec.scaleStrategy.podsToDelete: Invalid value: "a": ` + want}, got)
				}
			}
		})
	}
}

func TestFaultsOfTheTemplateAreReported(t *testing.T) {
	fault := field.Required(field.NewPath("spec", "template", "spec", "containers"), "")
	assert.Equal(t, field.ErrorList{fault}, Validate(valid(), nil, Facts{Template: podtemplate.Change{Errors: field.ErrorList{fault}}}))
}

func TestInPlaceOnly(t *testing.T) {
	container := func(change func(*corev1.Container)) func(*v1beta1.CloneSet) {
		return func(set *v1beta1.CloneSet) { change(&set.Spec.Template.Spec.Containers[0]) }
	}
	cases := []struct {
		name    string
		change  func(*v1beta1.CloneSet)
		options inplace.Options
		want    string
	}{
		{name: "an image", change: container(func(c *corev1.Container) { c.Image = "nginx:2" })},
		{name: "labels", change: func(s *v1beta1.CloneSet) { s.Spec.Template.Labels["version"] = "2" }},
		{name: "the pull policy as CloneSet reads it", change: container(func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways })},
		{
			name:   "a command besides an image",
			change: container(func(c *corev1.Container) { c.Image, c.Command = "nginx:2", []string{"run"} }),
			want:   "spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/command",
		},
		{
			name:   "another pull policy",
			change: container(func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullNever }),
			want:   "but found replace /containers/0/imagePullPolicy",
		},
		{
			name:   "cpu where pods cannot be resized",
			change: container(setCPU("2")),
			want:   "but found replace /containers/0/resources/requests/cpu",
		},
		{name: "cpu where pods can be resized", change: container(setCPU("2")), options: inplace.Options{Resize: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inPlaceOnly := rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.PodUpdatePolicy = v1beta1.InPlaceOnly })
			old := valid(inPlaceOnly, container(setCPU("1")))
			set := old.DeepCopy()
			c.change(set)
			got := texts(Validate(set, old, Facts{InPlace: c.options}))
			if c.want == "" {
				assert.Empty(t, got)
			} else if assert.Len(t, got, 1) {
				assert.Contains(t, got[0], c.want)
			}

			set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceIfPossible
			assert.Empty(t, Validate(set, old, Facts{InPlace: c.options}), "another policy recreates")
		})
	}
}

func setCPU(quantity string) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
	}
}

func TestInPlaceOnlyComparesWithTheDefaultsOfTheCluster(t *testing.T) {
	old := valid(rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) { r.PodUpdatePolicy = v1beta1.InPlaceOnly }))
	set := old.DeepCopy()
	set.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	defaulted := set.Spec.Template.DeepCopy()
	assert.Empty(t, Validate(set, old, Facts{Template: podtemplate.Change{Before: defaulted, After: defaulted}}))
}

func TestAnUpdateThroughV1alpha1LosesNothing(t *testing.T) {
	stored := valid(func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.Type = v1beta1.OnDelete
		s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.InPlaceOnly
	})
	set := stored.DeepCopy()
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = ""

	assert.Empty(t, Validate(set, stored, Facts{Version: "v1beta1"}))
	got := texts(Validate(set, stored, Facts{Version: "v1alpha1"}))
	if assert.Len(t, got, 1) {
		assert.Contains(t, got[0], "v1alpha1 cannot express podUpdatePolicy InPlaceOnly with type OnDelete")
	}
}

func TestWarnings(t *testing.T) {
	onDelete := valid(func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.Type = v1beta1.OnDelete })
	assert.Equal(t, []string{"rollingUpdate is ignored with type OnDelete"}, Warnings(onDelete, nil, "v1beta1"))
	assert.Empty(t, Warnings(onDelete, nil, "v1alpha1"), "v1alpha1 has no rollingUpdate")
	assert.Empty(t, Warnings(valid(), nil, "v1beta1"))
}

func TestRemovedClaimTemplatesThatAPartitionKeepsMountedAreNamed(t *testing.T) {
	mounted := valid(func(s *v1beta1.CloneSet) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi"), gen.Claim("log", "1Gi"), gen.Claim("spare", "1Gi")}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data"}, {Name: "log"}}
	})
	removed := func(partition string, kind v1beta1.CloneSetUpdateStrategyType) []string {
		set := mounted.DeepCopy()
		set.Spec.VolumeClaimTemplates = set.Spec.VolumeClaimTemplates[:1]
		set.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: kind, RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{Partition: new(intstr.Parse(partition))}}
		return Warnings(set, mounted, "v1alpha1")
	}
	require.Len(t, removed("50%", v1beta1.RollingUpdate), 1, "nothing mounts the spare one")
	assert.Contains(t, removed("1", v1beta1.RollingUpdate)[0], "spec.volumeClaimTemplates[log]: partition keeps pods")
	assert.Empty(t, removed("0", v1beta1.RollingUpdate))
	assert.Empty(t, removed("1", v1beta1.OnDelete), "a partition has no effect")
}
