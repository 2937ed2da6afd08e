package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{
		"crd/advancedcronjobs.yaml", "crd/broadcastjobs.yaml", "crd/imagepulljobs.yaml", "crd/imagelistpulljobs.yaml",
	}})
}

// Manifests as users of OpenKruise have them are stored as they are, metadata of templates included.
func TestManifestsAreStoredAsTheyAreSent(t *testing.T) {
	const pod = `{metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 0.5}}}]}}`
	for name, text := range map[string]string{
		"a Job by a schedule":                 `{kind: AdvancedCronJob, spec: {schedule: "*/1 * * * *", template: {jobTemplate: {metadata: {labels: {c: d}}, spec: {completions: 1, template: ` + pod + `}}}}}`,
		"a BroadcastJob by a schedule":        `{kind: AdvancedCronJob, spec: {schedule: "@daily", timeZone: Asia/Shanghai, concurrencyPolicy: Forbid, template: {broadcastJobTemplate: {metadata: {labels: {c: d}}, spec: {completionPolicy: {type: Always, ttlSecondsAfterFinished: 10}, template: ` + pod + `}}}}}`,
		"an ImageListPullJob by a schedule":   `{kind: AdvancedCronJob, spec: {schedule: "@daily", template: {imageListPullJobTemplate: {metadata: {annotations: {c: d}}, spec: {images: [a], completionPolicy: {type: Always}}}}}}`,
		"a pod on every node":                 `{kind: BroadcastJob, spec: {parallelism: 10%, failurePolicy: {type: Continue, restartLimit: 3}, completionPolicy: {type: Never}, template: ` + pod + `}}`,
		"an image on nodes with names":        `{kind: ImagePullJob, spec: {image: "nginx:1.9.1", parallelism: 10, selector: {names: [n1]}, completionPolicy: {type: Always, activeDeadlineSeconds: 1200, ttlSecondsAfterFinished: 300}, pullPolicy: {backoffLimit: 3, timeoutSeconds: 300}}}`,
		"an image on nodes with labels":       `{kind: ImagePullJob, spec: {image: "nginx", parallelism: "3", selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Exists}]}, sandboxConfig: {annotations: {e: f}}, completionPolicy: {}}}`,
		"images on nodes that run other pods": `{kind: ImageListPullJob, spec: {images: [a, b], podSelector: {matchLabels: {a: b}}, pullSecrets: [s], imagePullPolicy: Always, completionPolicy: {type: Never}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: testenv.Fields(t, text)}
			object.SetAPIVersion("apps.kruise.io/v1beta1")
			object.SetName("job")
			object.SetNamespace(env.Namespace(t))
			want, _, err := unstructured.NestedFieldCopy(testenv.Fields(t, text), "spec")
			require.NoError(t, err)
			require.NoError(t, env.Client(t).Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)))
			assert.Equal(t, want, object.Object["spec"])
		})
	}
}

// An AdvancedCronJob as OpenKruise keeps it, which has defaulted its template.
func TestAStoredCronJobIsAccepted(t *testing.T) {
	object := &unstructured.Unstructured{Object: testenv.Fields(t, `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: cron}
spec:
  concurrencyPolicy: Allow
  failedJobsHistoryLimit: 1
  paused: false
  schedule: '*/1 * * * *'
  successfulJobsHistoryLimit: 3
  template:
    broadcastJobTemplate:
      metadata: {}
      spec:
        completionPolicy: {ttlSecondsAfterFinished: 600, type: Always}
        failurePolicy: {}
        template:
          metadata: {creationTimestamp: null}
          spec:
            containers:
            - {name: main, image: "busybox:1.33", imagePullPolicy: Always, resources: {}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
            dnsPolicy: ClusterFirst
            restartPolicy: Never
            schedulerName: default-scheduler
            securityContext: {}
            terminationGracePeriodSeconds: 30
`)}
	object.SetNamespace(env.Namespace(t))
	want := object.DeepCopy()
	require.NoError(t, env.Client(t).Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)))
	assert.Equal(t, want.Object["spec"], object.Object["spec"])
}
