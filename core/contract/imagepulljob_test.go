package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
)

func TestImagePullJobHasThePublishedForm(t *testing.T) {
	parallelism := intstr.FromString("3")
	job, err := contract.NewImagePullJob("v1alpha1", metav1.ObjectMeta{Name: "web-abc-main", Namespace: "shop"}, contract.ImagePullJobSpec{
		Image: "app:2", PullSecrets: []string{"registry"}, Parallelism: &parallelism,
		PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}},
		}},
		PullPolicy:       contract.ImagePullJobPullPolicy{TimeoutSeconds: 300, BackoffLimit: 1},
		CompletionPolicy: contract.ImagePullJobCompletionPolicy{Type: contract.ImagePullJobAlways, TTLSecondsAfterFinished: 600},
		SandboxConfig:    contract.ImagePullJobSandboxConfig{Labels: map[string]string{"app": "web"}},
	})
	require.NoError(t, err)
	text, err := job.MarshalJSON()
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ImagePullJob",
		"metadata": {"name": "web-abc-main", "namespace": "shop"},
		"spec": {
			"image": "app:2",
			"podSelector": {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
			"pullSecrets": ["registry"],
			"parallelism": "3",
			"pullPolicy": {"timeoutSeconds": 300, "backoffLimit": 1},
			"completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 600},
			"sandboxConfig": {"labels": {"app": "web"}}
		}
	}`, string(text))
	assert.NotPanics(t, func() { job.DeepCopy() }, "only JSON types")
}
