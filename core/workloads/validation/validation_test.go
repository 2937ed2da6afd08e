package validation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/core/contract"
)

var spec = field.NewPath("spec")

func texts(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

func TestNumbersAreNotNegative(t *testing.T) {
	assert.Empty(t, NonNegative(nil, spec))
	assert.Empty(t, NonNegative(new(int32(0)), spec))
	assert.Equal(t, []string{"spec: Invalid value: -1: must be greater than or equal to 0"}, texts(NonNegative(new(int32(-1)), spec)))
}

func TestAmounts(t *testing.T) {
	for value, want := range map[string]string{
		"0": "", "3": "", "20%": "", "150%": "", "33.3%": "",
		"-1":  "must be greater than or equal to 0",
		"-5%": "must be greater than or equal to 0",
		"x":   "must be a number or a percentage such as 20%",
	} {
		t.Run(value, func(t *testing.T) {
			errs := Amount(new(intstr.Parse(value)), spec)
			if want == "" {
				assert.Empty(t, errs)
				return
			}
			assert.Len(t, errs, 1)
			assert.ErrorContains(t, errs.ToAggregate(), want)
		})
	}
	assert.Empty(t, Amount(nil, spec))
}

func TestInPlaceStrategies(t *testing.T) {
	assert.Empty(t, InPlaceStrategy(nil, spec))
	assert.Empty(t, InPlaceStrategy(&workload.InPlaceUpdateStrategy{GracePeriodSeconds: 3, ImagePreDownloadParallelism: new(intstr.FromString("5"))}, spec))
	errs := InPlaceStrategy(&workload.InPlaceUpdateStrategy{
		GracePeriodSeconds: -1, ImagePreDownloadTimeoutSeconds: new(int32(-1)), ImagePreDownloadMinUpdatedReadyPods: new(int32(-1)),
		ImagePreDownloadParallelism: new(intstr.FromString("5%")),
	}, spec)
	var paths []string
	for _, err := range errs {
		paths = append(paths, err.Field)
	}
	assert.Equal(t, []string{
		"spec.gracePeriodSeconds", "spec.imagePreDownloadTimeoutSeconds", "spec.imagePreDownloadMinUpdatedReadyPods", "spec.imagePreDownloadParallelism",
	}, paths)
	require.ErrorContains(t, errs.ToAggregate(), "imagePreDownloadParallelism does not support percentage value")
	for text, want := range map[string]string{"x": "must be a valid integer", "-2": "must be non-negative"} {
		errs := InPlaceStrategy(&workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: new(intstr.FromString(text))}, spec)
		assert.ErrorContains(t, errs.ToAggregate(), "imagePreDownloadParallelism "+want)
	}
}

func TestSelectors(t *testing.T) {
	labels := map[string]string{"app": "web"}
	for name, c := range map[string]struct {
		selector *metav1.LabelSelector
		want     []string
	}{
		"matching": {&metav1.LabelSelector{MatchLabels: labels}, nil},
		"absent":   {nil, []string{"spec.selector: Required value"}},
		"empty":    {&metav1.LabelSelector{}, []string{"spec.selector: Invalid value: {}: empty selector is invalid for web"}},
		"other":    {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}, []string{"spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`"}},
		"operator": {
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}},
			[]string{"spec.selector.matchExpressions[0].operator: Invalid value: \"Near\": not a valid selector operator"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, texts(Selector(c.selector, labels, spec, "web")))
		})
	}
}

func TestLongRunningPods(t *testing.T) {
	of := func(spec corev1.PodSpec) *corev1.PodTemplateSpec { return &corev1.PodTemplateSpec{Spec: spec} }
	assert.Empty(t, LongRunning(of(corev1.PodSpec{}), spec, "web"))
	assert.Empty(t, LongRunning(of(corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}), spec, "web"))
	assert.Equal(t, []string{
		"spec.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
		"spec.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in web is not Supported",
	}, texts(LongRunning(of(corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: new(int64(3))}), spec, "web")))
}

func TestTemplatesHaveNoLabelsOfSinglePods(t *testing.T) {
	for _, key := range contract.ControlLabels() {
		template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", key: "x"}}}
		assert.Equal(t, []string{"spec.metadata.labels[" + key + "]: Forbidden: this label belongs to single pods: remove it from the template"},
			texts(LongRunning(template, spec, "web")))
	}
}

func TestARestartNamesContainersOfTheTemplate(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "setup"}, {Name: "mesh", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
		Containers:     []corev1.Container{{Name: "app"}, {Name: "proxy"}},
	}}
	for value, want := range map[string][]string{
		"": nil, "2026-01-01T00:00:00Z": nil, "1 app": nil, "1  proxy app": nil, "1 mesh": nil,
		"1 setup":      {`spec.metadata.annotations[apps.kruise.io/restart-in-place]: Invalid value: "1 setup": there is no container setup`},
		"1 app nobody": {`spec.metadata.annotations[apps.kruise.io/restart-in-place]: Invalid value: "1 app nobody": there is no container nobody`},
	} {
		template.Annotations = map[string]string{contract.RestartInPlaceAnnotation: value}
		assert.Equal(t, want, texts(LongRunning(template, spec, "web")), value)
	}
}

func TestClaimTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		"valid": {func(*corev1.PersistentVolumeClaim) {}, ""},
		"all modes": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"}
		}, ""},
		"no class":     {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("") }, ""},
		"block":        {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, ""},
		"name":         {func(c *corev1.PersistentVolumeClaim) { c.Name = "" }, "claims[0].metadata.name: Required value"},
		"bad name":     {func(c *corev1.PersistentVolumeClaim) { c.Name = "my.data" }, "claims[0].metadata.name: Invalid value: \"my.data\": must not contain dots"},
		"no mode":      {func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes = nil }, "claims[0].spec.accessModes: Required value: at least 1 access mode is required"},
		"unknown mode": {func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = "Sometimes" }, "claims[0].spec.accessModes[0]: Unsupported value: \"Sometimes\""},
		"exclusive mode": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadWriteOncePod)
		}, "claims[0].spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"},
		"no request":  {func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }, "claims[0].spec.resources.requests[storage]: Required value"},
		"nothing":     {func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests["storage"] = resource.MustParse("0") }, "claims[0].spec.resources.requests[storage]: Invalid value: \"0\": must be greater than zero"},
		"class":       {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("Fast!") }, "claims[0].spec.storageClassName: Invalid value: \"Fast!\""},
		"volume mode": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeMode("Tape")) }, "claims[0].spec.volumeMode: Unsupported value: \"Tape\""},
		"selector": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}
		}, "claims[0].spec.selector.matchLabels: Invalid value: \"-\""},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ClaimTemplates([]corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi", c.change)}, field.NewPath("claims"))
			if c.want == "" {
				assert.Empty(t, errs)
				return
			}
			assert.Len(t, errs, 1)
			assert.ErrorContains(t, errs.ToAggregate(), c.want)
		})
	}
	twice := []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi"), gen.Claim("data", "1Gi")}
	assert.Equal(t, []string{"claims[1].metadata.name: Duplicate value: \"data\""}, texts(ClaimTemplates(twice, field.NewPath("claims"))))
}

func TestKnownFaultsAreLeftOut(t *testing.T) {
	known, changed, added := field.Invalid(spec, 1, "x"), field.Invalid(spec, 2, "x"), field.Required(spec, "")
	errs := WithoutStored(field.ErrorList{field.Invalid(spec, 1, "x"), changed, added}, field.ErrorList{known})
	assert.Equal(t, field.ErrorList{changed, added}, errs)
}

func TestTwiceNamesEachOnce(t *testing.T) {
	assert.Equal(t, []string{"a", "b"}, Duplicates([]string{"a", "a", "b", "c", "b", "a"}))
	assert.Empty(t, Duplicates([]string{"a", "b"}))
}

func TestRemovedClaimTemplates(t *testing.T) {
	mounts := gen.Template(gen.Image("main", "app:1"))
	mounts.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data"}, {Name: "log"}}
	of := func(names ...string) (all []corev1.PersistentVolumeClaim) {
		for _, name := range names {
			all = append(all, gen.Claim(name, "1Gi"))
		}
		return all
	}
	assert.Equal(t, []string{"spec[log]: partition keeps pods at a revision that mounts this volume; such a pod is recreated only if its PVC still exists"},
		RemovedClaimTemplates(of("data"), of("data", "log", "spare"), &mounts, spec))
	assert.Empty(t, RemovedClaimTemplates(of("log", "data"), of("data", "log"), &mounts, spec))
}
