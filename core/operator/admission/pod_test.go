package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func podKind() Kind[*corev1.Pod] { return NewKind("", "Pod", Hub[corev1.Pod]("v1")) }

// realisticPod returns a pod as a ReplicaSet's controller creates it and admission plugins leave it: three containers
// with 30 variables, probes and mounts each, six volumes, managed fields. Its JSON has some 24 kB.
func realisticPod(t testing.TB) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "checkout-7d9f8b6c5-x2x4q", GenerateName: "checkout-7d9f8b6c5-", UID: "0b1c7f0e-6a1d-4a53-9a44-4f6ad3f2f0d1",
			CreationTimestamp: metav1.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
			Labels:            map[string]string{"app": "checkout", "tier": "backend", "team": "payments", "pod-template-hash": "7d9f8b6c5"},
			Annotations:       map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": "4d1f9b0a6c"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "checkout-7d9f8b6c5", UID: "7a3e", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "checkout", RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst,
			TerminationGracePeriodSeconds: new(int64(30)), SchedulerName: "default-scheduler", Priority: new(int32(0)),
			Tolerations: []corev1.Toleration{
				{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
		},
	}
	for i := range 6 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", i), VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("config-%d", i)}, DefaultMode: new(int32(0o644))},
		}})
	}
	fields := map[string]any{}
	for i := range 3 {
		container := corev1.Container{
			Name: fmt.Sprintf("container-%d", i), Image: fmt.Sprintf("registry.example.com/shop/checkout-%d:v1.2.3", i), ImagePullPolicy: corev1.PullIfNotPresent,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}
		container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}, TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3}
		variables := map[string]any{".": map[string]any{}}
		for j := range 30 {
			variable := corev1.EnvVar{Name: fmt.Sprintf("CHECKOUT_SETTING_%d", j), Value: fmt.Sprintf("https://service-%d.shop.svc.cluster.local:8443/path", j)}
			if j%5 == 0 {
				variable.Value, variable.ValueFrom = "", &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "checkout"}, Key: variable.Name}}
			}
			container.Env = append(container.Env, variable)
			variables[`k:{"name":"`+variable.Name+`"}`] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:value": map[string]any{}}
		}
		for _, volume := range pod.Spec.Volumes {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: "/etc/" + volume.Name, ReadOnly: true})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ImageID: container.Image + "@sha256:6a5b", ContainerID: "containerd://0f9e", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pod.CreationTimestamp}},
		})
		fields[`k:{"name":"`+container.Name+`"}`] = map[string]any{".": map[string]any{}, "f:env": variables, "f:image": map[string]any{}, "f:resources": map[string]any{}}
	}
	for _, condition := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp})
	}
	pod.Status.Phase = corev1.PodRunning
	managed, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:containers": fields}})
	require.NoError(t, err)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &pod.CreationTimestamp,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(managed)),
	}}
	return pod
}

// podReview returns the body of a request about the realistic pod.
func podReview(t testing.TB, operation admissionv1.Operation) []byte {
	t.Helper()
	raw, err := json.Marshal(realisticPod(t))
	require.NoError(t, err)
	req := request(operation, "v1", "", "")
	req.UID = "request"
	req.Kind, req.Resource = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	if operation != admissionv1.Delete {
		req.Object = runtime.RawExtension{Raw: raw}
	}
	if operation != admissionv1.Create {
		req.OldObject = runtime.RawExtension{Raw: raw}
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req})
	require.NoError(t, err)
	return body
}

// BenchmarkPods is what answering one request about a pod costs, from the body to the answer.
func BenchmarkPods(b *testing.B) {
	allow := func(context.Context, Request[*corev1.Pod]) (Findings, error) { return Findings{}, nil }
	for _, bench := range []struct {
		name      string
		operation admissionv1.Operation
		handler   http.Handler
	}{
		{"validate/update", admissionv1.Update, podKind().Validating(allow)},
		{"validate/delete", admissionv1.Delete, podKind().Validating(allow)},
		{"mutate/unchanged", admissionv1.Create, podKind().Defaulting(func(context.Context, Request[*corev1.Pod]) error { return nil })},
		{"mutate/changed", admissionv1.Create, podKind().Defaulting(func(_ context.Context, req Request[*corev1.Pod]) error {
			req.New.Annotations["example.com/subset"] = "zone-a"
			req.New.Spec.Tolerations = append(req.New.Spec.Tolerations, corev1.Toleration{Key: "zone", Operator: corev1.TolerationOpExists})
			return nil
		})},
	} {
		b.Run(bench.name, func(b *testing.B) {
			body := podReview(b, bench.operation)
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			handler := Reviews().Handle(bench.handler)
			for b.Loop() {
				call := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", bytes.NewReader(body))
				call.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, call)
				if !bytes.Contains(answer.Body.Bytes(), []byte(`"allowed":true`)) {
					b.Fatal(answer.Body.String())
				}
			}
		})
	}
}

// BenchmarkPodCreates sends 200 creates of pods a second through HTTP/2, as the API server does, to rules that change each
// pod, and reports what half and 99% of the requests wait at most.
func BenchmarkPodCreates(b *testing.B) {
	server := httptest.NewUnstartedServer(Reviews().Handle(podKind().Defaulting(func(_ context.Context, req Request[*corev1.Pod]) error {
		req.New.Annotations["example.com/subset"] = "zone-a"
		return nil
	})))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	body := podReview(b, admissionv1.Create)
	waits := make([]time.Duration, b.N)
	var group sync.WaitGroup
	arrivals := time.NewTicker(time.Second / 200)
	defer arrivals.Stop()
	b.ResetTimer()
	for i := range waits {
		<-arrivals.C
		group.Go(func() {
			start := time.Now()
			call, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			call.Header.Set("Content-Type", "application/json")
			answer, err := server.Client().Do(call)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			waits[i] = time.Since(start)
		})
	}
	group.Wait()
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "ms-p99")
}
