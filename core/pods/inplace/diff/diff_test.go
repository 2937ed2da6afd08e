package diff

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func resources(limits, requests corev1.ResourceList) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		t.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: requests}
	}
}

// environment are entries NAME=VALUE.
func environment(entries ...string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		env := make([]corev1.EnvVar, len(entries))
		for i, entry := range entries {
			env[i].Name, env[i].Value, _ = strings.Cut(entry, "=")
		}
		t.Spec.Containers[0].Env = env
	}
}

func TestVerdicts(t *testing.T) {
	base := templateOf("app", "log")
	base.Labels = map[string]string{"version": "a"}
	base = withInits(base, "proxy")
	burstable := variant(base, resources(quantities("200m", "200Mi"), quantities("100m", "100Mi")))
	guaranteed := variant(base, resources(quantities("1", "1Gi"), quantities("1", "1Gi")))
	guaranteed.Spec.InitContainers = nil
	guaranteed.Spec.Containers = guaranteed.Spec.Containers[:1]
	one := func(change func(c *corev1.Container)) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) { change(&t.Spec.Containers[0]) }
	}
	tests := []struct {
		name   string
		from   *corev1.PodTemplateSpec
		change func(*corev1.PodTemplateSpec)
		path   string // of the field that is in the way, empty for in place
	}{
		{"nothing", base, func(*corev1.PodTemplateSpec) {}, ""},
		{"image", base, one(func(c *corev1.Container) { c.Image = "app:v2" }), ""},
		{"image and label", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Labels["version"] = "app:v2", "b"
		}, ""},
		{"label", base, func(t *corev1.PodTemplateSpec) { t.Labels["version"] = "b" }, ""},
		{"first annotation", base, func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"example.com/a": "b"} }, ""},
		{"finalizer", base, func(t *corev1.PodTemplateSpec) { t.Finalizers = []string{"example.io/f"} }, ""},
		{"protocol of a probe (Kubernetes 1.37)", base, one(func(c *corev1.Container) {
			get := corev1.HTTPGetAction{Protocol: new(corev1.HTTPProtocolHTTP2)}
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &get}}
		}), "spec.containers[0].readinessProbe"},
		{"options of a bind mount (Kubernetes 1.37)", base, one(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data", BindMountOptions: []string{"noexec"}}}
		}), "spec.containers[0].volumeMounts"},
		{"eviction responders (Kubernetes 1.37)", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "example.com/drain"}}
		}, "spec.evictionResponders"},
		{"nil and empty are equal", base, func(t *corev1.PodTemplateSpec) { t.Spec.Volumes = []corev1.Volume{} }, ""},
		{"swapped containers", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0], t.Spec.Containers[1] = t.Spec.Containers[1], t.Spec.Containers[0]
		}, "spec.containers"},
		{"added container", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "more"})
		}, "spec.containers"},
		{"init container's image", base, func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[0].Image = "setup:v2" }, "spec.initContainers[0].image"},
		{"native sidecar's image", base, func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Image = "proxy:v2" }, ""},
		{"native sidecar's image without a tag", base, func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Image = "proxy" }, ""},
		{"native sidecar's pull policy", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].ImagePullPolicy = corev1.PullNever
		}, "spec.initContainers[1].imagePullPolicy"},
		{"native sidecar that is to end", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].RestartPolicy = nil
		}, "spec.initContainers[1].image"},
		{"renamed native sidecar", base, func(t *corev1.PodTemplateSpec) { t.Spec.InitContainers[1].Name = "mesh" }, "spec.initContainers[1].name"},
		{"added native sidecar", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers = append(t.Spec.InitContainers, t.Spec.InitContainers[1])
		}, "spec.initContainers"},
		{"env literal", base, one(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A", Value: "1"}} }), "spec.containers[0].env"},
		{"order of the environment", variant(base, environment("A=1", "B=2", "C=3")), environment("C=3", "A=1", "B=2"), ""},
		{"order of the environment, and a value", variant(base, environment("A=1", "B=2")), environment("B=3", "A=1"), "spec.containers[0].env[1].value"},
		{"order of entries that refer to others", variant(base, environment("A=1", "B=$(A)")), environment("B=$(A)", "A=1"), "spec.containers[0].env[0].name"},
		{"order of entries of one name", variant(base, environment("A=1", "A=2")), environment("A=2", "A=1"), "spec.containers[0].env[0].value"},
		{"port", base, one(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80}} }), "spec.containers[0].ports"},
		{"probe", variant(base, one(func(c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 10} })),
			one(func(c *corev1.Container) { c.ReadinessProbe.PeriodSeconds = 5 }), "spec.containers[0].readinessProbe.periodSeconds"},
		{"toleration", base, func(t *corev1.PodTemplateSpec) { t.Spec.Tolerations = []corev1.Toleration{{Key: "a"}} }, "spec.tolerations"},
		{"node selector", base, func(t *corev1.PodTemplateSpec) { t.Spec.NodeSelector = map[string]string{"zone": "a"} }, "spec.nodeSelector[zone]"},

		{"cpu limit", burstable, resources(quantities("400m", "200Mi"), quantities("100m", "100Mi")), ""},
		{"same quantity in other words", burstable, resources(quantities("0.2", "200Mi"), quantities("100m", "100Mi")), ""},
		{"added to Burstable", variant(base, resources(nil, quantities("100m", ""))), resources(quantities("1", ""), quantities("100m", "1Gi")), ""},
		{"guaranteed doubled", guaranteed, resources(quantities("2", "2Gi"), quantities("2", "2Gi")), ""},
		{"guaranteed by limits alone", guaranteed, resources(quantities("2", "2Gi"), nil), ""},
		{"guaranteed to burstable", guaranteed, resources(quantities("2", "1Gi"), quantities("1", "1Gi")), "spec.containers[*].resources"},
		{"best effort to burstable", base, resources(nil, quantities("100m", "")), "spec.containers[*].resources"},
		{"memory limit removed", burstable, resources(quantities("200m", ""), quantities("100m", "100Mi")), "spec.containers[0].resources.limits.memory"},
		{"request removed", variant(base, resources(nil, quantities("1", "1Gi"))), resources(nil, quantities("1", "")), "spec.containers[0].resources.requests.memory"},
		{"ephemeral storage", burstable, one(func(c *corev1.Container) {
			c.Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
		}), "spec.containers[0].resources.limits[ephemeral-storage]"},
		{"claims", burstable, one(func(c *corev1.Container) {
			c.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		}), "spec.containers[0].resources.claims"},
		{"resize policy", burstable, one(func(c *corev1.Container) {
			c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
		}), "spec.containers[0].resizePolicy"},
		{"init container's resources", base, func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[0].Resources.Limits = quantities("1", "")
		}, "spec.initContainers[0].resources.limits[cpu]"},
		{"native sidecar's resources", burstable, func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].Resources.Limits = quantities("1", "")
		}, ""},
		{"native sidecar's storage", burstable, func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers[1].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
		}, "spec.initContainers[1].resources.limits[ephemeral-storage]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Templates(revisionOf("w-1", tt.from), revisionOf("w-2", variant(tt.from, tt.change)), allGates)
			if tt.path == "" {
				require.NoError(t, err)
				return
			}
			var not *NotPossibleError
			require.ErrorAs(t, err, &not)
			assert.Equal(t, tt.path, not.Path)
			assert.Contains(t, err.Error(), tt.path)
		})
	}
}

func TestWithoutTheResizeGateResourcesAreFixed(t *testing.T) {
	from := variant(templateOf("app"), resources(nil, quantities("100m", "")))
	to := variant(from, resources(nil, quantities("200m", "")))
	_, err := Templates(revisionOf("w-1", from), revisionOf("w-2", to), Options{EnvFromMetadata: true})
	assert.ErrorContains(t, err, "spec.containers[0].resources.requests[cpu]")
}

func TestUnknownRevisionsCannotBeCompared(t *testing.T) {
	known := revisionOf("w-1", templateOf("app"))
	for _, pair := range [][2]*Revision{{nil, known}, {known, nil}, {known, {Name: "w-2"}}} {
		_, err := Templates(pair[0], pair[1], allGates)
		var not *NotPossibleError
		assert.ErrorAs(t, err, &not)
	}
}

func TestClaimsAreCompared(t *testing.T) {
	hash := func(text string) *string { return &text }
	tests := []struct {
		name     string
		from, to *string
		compare  bool
		possible bool
	}{
		{"equal", hash("1"), hash("1"), true, true},
		{"differing", hash("1"), hash("2"), true, false},
		{"the caller ignores them", hash("1"), hash("2"), false, true},
		{"one unknown", nil, hash("2"), true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from, to := revisionOf("w-1", templateOf("app")), revisionOf("w-2", templateOf("app"))
			from.ClaimsHash, to.ClaimsHash = tt.from, tt.to
			_, err := Templates(from, to, Options{CompareClaims: tt.compare})
			assert.Equal(t, tt.possible, err == nil, "%v", err)
		})
	}
}
