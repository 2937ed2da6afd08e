package admission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/admission"
)

func suffix() string { return "x7k2p" }

// variables gives a container variables, which is added when there is none of the name.
func variables(container string, list ...corev1.EnvVar) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		gen.Image(container, "app:1")(pod)
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == container {
				pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, list...)
			}
		}
	})
}

func priority(value string) corev1.EnvVar {
	return corev1.EnvVar{Name: contract.ContainerPriorityEnv, Value: value}
}

func barrier(configMap, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Key: key},
	}}
}

func ordered() gen.PodOption {
	return gen.Annotation(contract.ContainerLaunchPriorityAnnotation, contract.LaunchOrdered)
}

// keys returns the barriers of the pod, "-" for none.
func keys(pod *corev1.Pod) string {
	var all []string
	for _, c := range pod.Spec.Containers {
		key := "-"
		for _, e := range c.Env {
			if e.Name == contract.ContainerBarrierEnv {
				key = e.ValueFrom.ConfigMapKeyRef.Key
			}
		}
		all = append(all, key)
	}
	return strings.Join(all, " ")
}

func TestOrder(t *testing.T) {
	cases := []struct {
		name string
		pod  []gen.PodOption
		want string
	}{
		{"no priorities", []gen.PodOption{variables("log")}, "- -"},
		{"one container", []gen.PodOption{variables("main", priority("5"))}, "-"},
		{"one container in order", []gen.PodOption{ordered()}, "-"},
		{"equal priorities", []gen.PodOption{variables("main", priority("5")), variables("log", priority("5"))}, "- -"},
		{"zero is the default", []gen.PodOption{variables("log", priority("0"))}, "- -"},
		{"one higher", []gen.PodOption{variables("log", priority("10"))}, "p_0 p_10"},
		{"one lower", []gen.PodOption{variables("log", priority("-1"))}, "p_0 p_-1"},
		{"bounds", []gen.PodOption{variables("main", priority("2147483647")), variables("log", priority("-2147483647"))}, "p_2147483647 p_-2147483647"},
		{"one container with a bad first value", []gen.PodOption{variables("main", priority("x"), priority("2"))}, "-"},
		{"the last one of several", []gen.PodOption{variables("main", priority("x"), priority("2")), variables("log")}, "p_2 p_0"},
		{"list order", []gen.PodOption{ordered(), variables("log"), variables("job")}, "p_0 p_-1 p_-2"},
		{"list order wins", []gen.PodOption{ordered(), variables("log", priority("high"))}, "p_0 p_-1"},
		{"another value of the annotation", []gen.PodOption{gen.Annotation(contract.ContainerLaunchPriorityAnnotation, "ordered"), variables("log")}, "- -"},
		{"barriers of a copy", []gen.PodOption{variables("main", barrier("old-barrier", "p_3")), variables("log", priority("1"))}, "p_0 p_1"},
		{"barriers without priorities", []gen.PodOption{variables("main", barrier("old-barrier", "p_3")), variables("log")}, "- -"},
		{"a static pod", []gen.PodOption{ordered(), variables("log"), gen.Annotation(corev1.MirrorPodAnnotationKey, "x")}, "- -"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := gen.Pod("web", c.pod...)
			require.Empty(t, admission.AddBarriers(pod, suffix))
			assert.Equal(t, c.want, keys(pod))
			again := pod.DeepCopy()
			require.Empty(t, admission.AddBarriers(again, suffix))
			assert.Equal(t, pod, again, "the second look changes nothing")
		})
	}
}

func TestOrderRefuses(t *testing.T) {
	cases := []struct {
		name string
		pod  []gen.PodOption
		want string
	}{
		{"text", []gen.PodOption{variables("log", priority("high"))}, `spec.containers[1].env[0].value: Invalid value: "high": must be an integer`},
		{"nothing", []gen.PodOption{variables("log", priority(""))}, `spec.containers[1].env[0].value: Invalid value: "": must be an integer`},
		{"too high", []gen.PodOption{variables("log", priority("2147483648"))}, `must be between -2147483647 and 2147483647`},
		{"too low", []gen.PodOption{variables("log", priority("-2147483648"))}, `must be between -2147483647 and 2147483647`},
		{"far too high", []gen.PodOption{variables("log", priority("99999999999999999999"))}, `must be an integer`},
		{"a reference", []gen.PodOption{variables("log", corev1.EnvVar{Name: contract.ContainerPriorityEnv, ValueFrom: &corev1.EnvVarSource{}})}, `spec.containers[1].env[0].valueFrom: Invalid value`},
		{"the barrier as text", []gen.PodOption{variables("main", corev1.EnvVar{Name: contract.ContainerBarrierEnv, Value: "p_1"})}, `spec.containers[0].env[0]: Forbidden: the name is reserved`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pod := gen.Pod("web", c.pod...)
			before := pod.DeepCopy()
			require.ErrorContains(t, admission.AddBarriers(pod, suffix).ToAggregate(), c.want)
			assert.Equal(t, before, pod)
		})
	}
}

func TestOrderMakesTheNameThatTheConfigMapNeeds(t *testing.T) {
	generated := func(base string) *corev1.Pod {
		pod := gen.Pod("", gen.Change(func(pod *corev1.Pod) { pod.GenerateName = base }), variables("log", priority("1")))
		require.Empty(t, admission.AddBarriers(pod, suffix))
		return pod
	}
	pod := generated("web-")
	assert.Equal(t, "web-x7k2p", pod.Name)
	assert.Equal(t, barrier("web-x7k2p-barrier", "p_0"), pod.Spec.Containers[0].Env[0])
	assert.Equal(t, strings.Repeat("w", 58)+"x7k2p", generated(strings.Repeat("w", 80)).Name)

	long := gen.Pod(strings.Repeat("w", 253), variables("log", priority("1")))
	require.Empty(t, admission.AddBarriers(long, suffix))
	name := long.Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Name
	assert.Len(t, name, 253)
	assert.Empty(t, validation.IsDNS1123Subdomain(name))
	other := gen.Pod(strings.Repeat("w", 252)+"v", variables("log", priority("1")))
	require.Empty(t, admission.AddBarriers(other, suffix))
	assert.NotEqual(t, name, other.Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Name)
}

func TestOrderComesAfterOtherVariablesAndForgetsTheMarkOfACopy(t *testing.T) {
	pod := gen.Pod("web", gen.Annotation(contract.ContainerLaunchPriorityCompletedAnnotation, "true"),
		variables("main", corev1.EnvVar{Name: "A", Value: "1"}), variables("log", priority("1")))
	require.Empty(t, admission.AddBarriers(pod, suffix))
	assert.Equal(t, []corev1.EnvVar{{Name: "A", Value: "1"}, barrier("web-barrier", "p_0")}, pod.Spec.Containers[0].Env)
	assert.NotContains(t, pod.Annotations, contract.ContainerLaunchPriorityCompletedAnnotation)

	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Env: []corev1.EnvVar{priority("20")}})
	require.Empty(t, admission.AddBarriers(pod, suffix), "an injector came in between")
	assert.Equal(t, "p_0 p_1 p_20", keys(pod))
}

// Whatever stands in a pod, it is either refused as a whole or ordered as a whole, and a pod without a word of
// ours stays as it is.
func FuzzOrder(f *testing.F) {
	f.Add("10", "KRUISE_CONTAINER_PRIORITY", "-3", "Ordered", uint8(3))
	f.Add("", "A", "x", "", uint8(0))
	f.Fuzz(func(t *testing.T, first, name, second, annotation string, n uint8) {
		pod := gen.Pod("web", variables("main", priority(first)), gen.Annotation(contract.ContainerLaunchPriorityAnnotation, annotation))
		for i := range int(n % 5) {
			variables("c"+string(rune('0'+i)), corev1.EnvVar{Name: name, Value: second})(pod)
		}
		asks := func(pod *corev1.Pod) bool {
			raw, _ := json.Marshal(pod.Spec)
			return strings.Contains(string(raw), "KRUISE_CONTAINER_") || annotation == contract.LaunchOrdered
		}
		before := pod.DeepCopy()
		errs := admission.AddBarriers(pod, suffix)
		with := strings.Count(keys(pod)+" ", "p_")
		switch {
		case len(errs) > 0:
			assert.Equal(t, before, pod)
		case with > 0:
			assert.Equal(t, len(pod.Spec.Containers), with)
		}
		pod.Spec.Containers[0].Env = nil
		if plain := pod.DeepCopy(); !asks(plain) {
			require.Empty(t, admission.AddBarriers(plain, suffix))
			assert.Equal(t, pod, plain)
		}
	})
}

func TestGate(t *testing.T) {
	pod := gen.Pod("web")
	admission.AddReadinessGate(pod)
	assert.Equal(t, []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}, pod.Spec.ReadinessGates)
	admission.AddReadinessGate(pod)
	assert.Len(t, pod.Spec.ReadinessGates, 1)
	static := gen.Pod("web", gen.Annotation(corev1.MirrorPodAnnotationKey, "x"))
	admission.AddReadinessGate(static)
	assert.Empty(t, static.Spec.ReadinessGates)
}
