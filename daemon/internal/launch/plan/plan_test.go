package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// behind gives the pod a container behind a barrier of the priority.
func behind(container string, priority int) gen.PodOption {
	return raw(container, podmarks.Barrier("web", priority))
}

func raw(container string, barrier corev1.EnvVar) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) {
		gen.Image(container, "app:1")(pod)
		for i := range pod.Spec.Containers {
			if pod.Spec.Containers[i].Name == container {
				pod.Spec.Containers[i].Env = append(pod.Spec.Containers[i].Env, barrier)
			}
		}
	})
}

func status(s corev1.ContainerStatus) gen.PodOption {
	return gen.Change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s) })
}

func ready(container string) gen.PodOption {
	return status(corev1.ContainerStatus{Name: container, Ready: true})
}

func ended(container string, code int32) gen.PodOption {
	return status(corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}})
}

func completed() gen.PodOption {
	return gen.Annotation(contract.ContainerLaunchPriorityCompletedAnnotation, "true")
}

// three returns the pod of three levels: main 0, log 10, job -5.
func three(options ...gen.PodOption) *corev1.Pod {
	return gen.Pod("web", append([]gen.PodOption{behind("main", 0), behind("log", 10), behind("job", -5)}, options...)...)
}

// keys returns a ConfigMap of the owner with keys.
func keys(owner *corev1.Pod, names ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-barrier", UID: "map", ResourceVersion: "1", Labels: map[string]string{podmarks.BarrierLabel: "true"},
	}, Data: map[string]string{}}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
	for _, name := range names {
		m.Data[name] = "true"
	}
	return m
}

// text returns the plan in short: what is opened, and what else is done.
func text(p action.Plan) string {
	var all []string
	for _, step := range p.Steps {
		for _, a := range step.Actions {
			what := step.Name
			data := map[string]any{}
			if m, ok := a.Object.(*corev1.ConfigMap); ok && a.Verb == action.Create {
				for key := range m.Data {
					data[key] = true
				}
			}
			for _, patch := range a.Patches {
				if d, ok := patch.Body["data"].(map[string]any); ok {
					data = d
				}
			}
			for _, key := range []string{"p_10", "p_0", "p_-5"} {
				if _, ok := data[key]; ok {
					what += " " + key
				}
			}
			all = append(all, what)
		}
	}
	return strings.Join(all, "; ")
}

func TestCompute(t *testing.T) {
	former := gen.Pod("web", gen.Change(func(pod *corev1.Pod) { pod.UID = "former" }))
	same := three()
	stranger := keys(nil)
	set := keys(nil)
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "x", Controller: new(true)}}
	going := keys(former, "p_10")
	going.DeletionTimestamp = new(metav1.NewTime(gen.Epoch()))
	unlabelled := keys(same, "p_10", "p_0", "p_-5")
	unlabelled.Labels = nil
	cases := []struct {
		name string
		pod  *corev1.Pod
		m    *corev1.ConfigMap
		want string
	}{
		{"the highest one first", three(), nil, "open p_10"},
		{"nothing while it is not ready", three(), keys(same, "p_10"), ""},
		{"the next one", three(ready("log")), keys(same, "p_10"), "open p_10 p_0"},
		{"nothing while the second is not ready", three(ready("log")), keys(same, "p_10", "p_0"), ""},
		{"the last one completes", three(ready("log"), ready("main")), keys(same, "p_10", "p_0"), "open p_10 p_0 p_-5; completed"},
		{"the mark alone after a crash", three(ready("log"), ready("main")), keys(same, "p_10", "p_0", "p_-5"), "completed"},
		{"all were ready at once", three(ready("log"), ready("main"), ready("job")), keys(same, "p_10"), "open p_10 p_0 p_-5; completed"},
		{"a lost ConfigMap is made again with all that is needed", three(ready("log")), nil, "open p_10 p_0"},
		{"one that was ready and is not holds up the last", three(ready("main")), keys(same, "p_10", "p_0"), ""},
		{"one that has done its work holds up nobody", three(ended("log", 0)), keys(same, "p_10"), "open p_10 p_0"},
		{"one that has failed does", three(ended("log", 1)), keys(same, "p_10"), ""},
		{"equal priorities start together", gen.Pod("web", behind("main", 0), behind("log", 0), behind("job", -5)), nil, "open p_0"},
		{"a container without a barrier does not count", gen.Pod("web", gen.Image("plain", "x"), behind("main", 0), behind("log", 10)), nil, "open p_10"},
		{"a pod without barriers", gen.Pod("web", gen.Image("log", "x")), nil, ""},
		{"a completed pod", three(completed()), keys(same, "p_10", "p_0", "p_-5"), ""},
		{"a completed pod whose ConfigMap is gone", three(completed(), ready("log"), ended("main", 1)), nil, "open p_10 p_0 p_-5"},
		{"one whose ConfigMap was emptied", three(completed(), ready("log"), ended("main", 1)), keys(same), "open p_10 p_0 p_-5"},
		{"a completed pod and somebody's own ConfigMap", three(completed()), stranger, ""},
		{"a pod whose containers are ready", three(gen.Condition(corev1.ContainersReady, corev1.ConditionTrue, gen.Epoch())), keys(same), "open p_10 p_0 p_-5; completed"},
		{"a ConfigMap without the label is not in the cache", three(completed()), unlabelled, "open p_10 p_0 p_-5"},
		{"a pod that is over", three(gen.Phase(corev1.PodFailed)), nil, ""},
		{"a former pod's ConfigMap", three(), keys(former, "p_10", "p_0", "p_-5"), "clear; open p_10"},
		{"one of a former pod that is going already", three(), going, ""},
		{"somebody's own ConfigMap", three(), stranger, ""},
		{"a workload's ConfigMap", three(), set, ""},
		{"a pod that is going takes it along", three(gen.Terminating()), keys(same, "p_10"), "clear"},
		{"also when it was completed", three(gen.Terminating(), completed()), keys(same, "p_10"), "clear"},
		{"but nobody else's", three(gen.Terminating()), keys(former, "p_10"), ""},
		{"nothing to take along", three(gen.Terminating()), nil, ""},
		{"no priority", gen.Pod("web", raw("main", barrier("web-barrier", "p_high")), behind("log", 10)), nil, "open p_10; completed"},
		{"no priority at all", gen.Pod("web", raw("main", barrier("web-barrier", "10")), raw("log", barrier("web-barrier", "p_+1"))), nil, ""},
		{"another ConfigMap", gen.Pod("web", raw("main", barrier("settings", "p_1"))), nil, ""},
		{"text", gen.Pod("web", raw("main", corev1.EnvVar{Name: contract.ContainerBarrierEnv, Value: "p_1"})), nil, ""},
		{"a field", gen.Pod("web", raw("main", corev1.EnvVar{Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{}})), nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := plan.Snapshot{Pod: c.pod, ConfigMap: c.m, Now: gen.Epoch()}
			pod, m := c.pod.DeepCopy(), c.m.DeepCopy()
			got := plan.Compute(s)
			assert.Equal(t, c.want, text(got), got.String())
			assert.Equal(t, got, plan.Compute(s))
			assert.Equal(t, pod, c.pod)
			assert.Equal(t, m, c.m)
		})
	}
}

func barrier(configMap, key string) corev1.EnvVar {
	e := podmarks.Barrier("web", 0)
	e.ValueFrom.ConfigMapKeyRef.Name, e.ValueFrom.ConfigMapKeyRef.Key = configMap, key
	return e
}

func TestWhatIsWrong(t *testing.T) {
	p := plan.Compute(plan.Snapshot{Pod: three(), ConfigMap: keys(nil), Now: gen.Epoch()})
	assert.Equal(t, "Containers wait: ConfigMap web-barrier exists and belongs to another object", p.Notices[0].Note)
	assert.NotZero(t, p.RequeueAfter, "nobody watches it")
	p = plan.Compute(plan.Snapshot{Pod: gen.Pod("web", raw("main", barrier("web-barrier", "p_x"))), Now: gen.Epoch()})
	assert.Contains(t, p.Notices[0].Note, `Container main waits forever: key "p_x"`)
}

func TestTheConfigMapGoesWithItsPod(t *testing.T) {
	pod := three()
	p := plan.Compute(plan.Snapshot{Pod: pod, Now: gen.Epoch()})
	m := p.Steps[0].Actions[0].Object.(*corev1.ConfigMap)
	assert.True(t, metav1.IsControlledBy(m, pod))
	assert.Equal(t, "web-barrier", m.Name)
	assert.Contains(t, m.Labels, podmarks.BarrierLabel)
}

func TestReadinessGate(t *testing.T) {
	gate := gen.ReadinessGate(contract.KruisePodReady)
	set := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}, ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "set"}}
	cases := []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"a pod on a node", gen.Pod("web", gate, gen.OnNode("n")), true},
		{"a pod without the gate", gen.Pod("web", gen.OnNode("n")), false},
		{"a pod without a node", gen.Pod("web", gate), false},
		{"a gate that is answered", gen.Pod("web", gate, gen.OnNode("n"), gen.Condition(contract.KruisePodReady, corev1.ConditionFalse, gen.Epoch())), false},
		{"a pod of a workload that answers itself", gen.Pod("web", gate, gen.OnNode("n"), gen.OwnedBy(set)), false},
		{"a pod that is going", gen.Pod("web", gate, gen.OnNode("n"), gen.Terminating()), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := plan.Compute(plan.Snapshot{Pod: c.pod, Now: gen.Epoch()})
			assert.Equal(t, c.want, !p.Empty())
			if c.want {
				assert.Equal(t, "status", p.Steps[0].Actions[0].Patches[0].Subresource)
				conditions := p.Steps[0].Actions[0].Patches[0].Body["status"].(map[string]any)["conditions"].([]any)
				assert.Equal(t, "True", conditions[0].(map[string]any)["status"])
			}
		})
	}
}
