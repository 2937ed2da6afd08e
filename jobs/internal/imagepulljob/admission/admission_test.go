package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// job reads a spec; the image is nginx unless it says otherwise.
func job(t *testing.T, spec string) *v1beta1.ImagePullJob {
	t.Helper()
	j := &v1beta1.ImagePullJob{}
	fields := map[string]any{"spec": testenv.Fields(t, spec)}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, j))
	if j.Spec.Image == "" {
		j.Spec.Image = "nginx"
	}
	return j
}

func TestValidate(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`:                          "",
		`{selector: {names: [a, b]}}`: "",
		`{selector: {names: [a], matchLabels: {b: c}}}`: "spec.selector: Invalid value: [\"a\"]: names and a label selector are mutually exclusive",
		`{selector: {names: [n1, n1]}}`:                 `spec.selector.names[1]: Duplicate value: "n1"`,
		`{selector: {}, podSelector: {}}`:               "spec.podSelector: Forbidden: podSelector and selector are mutually exclusive",
		`{podSelector: {matchLabels: {a: "b c"}}}`:      "spec.podSelector.matchLabels: Invalid value",
		`{image: "UPPER"}`:                              `spec.image: Invalid value: "UPPER"`,
		`{parallelism: 0}`:                              "",
		`{parallelism: "3"}`:                            "",
		`{parallelism: 10%}`:                            "parallelism does not support percentage value",
		`{parallelism: abc}`:                            "parallelism must be a valid integer",
		`{sandboxConfig: {annotations: {a: ` + strings.Repeat("x", 4096) + `}}}`: "spec.sandboxConfig: Too long: 4097 bytes of labels and annotations, at most 4096",
		`{sandboxConfig: {annotations: {a: ` + strings.Repeat("x", 4095) + `}}}`: "",
		`{pullSecrets: [` + strings.Repeat("a,", 65) + `]}`:                      "spec.pullSecrets: Too many: 65: must have at most 64 items",
		`{pullSecrets: [a/b]}`:                                          "spec.pullSecrets[0]: Invalid value",
		`{parallelism: -1}`:                                             "parallelism must be non-negative",
		`{parallelism: "-5"}`:                                           "parallelism must be non-negative",
		`{pullPolicy: {timeoutSeconds: 0}}`:                             "spec.pullPolicy.timeoutSeconds",
		`{pullPolicy: {backoffLimit: -1}}`:                              "spec.pullPolicy.backoffLimit",
		`{completionPolicy: {activeDeadlineSeconds: 599}}`:              "spec.completionPolicy.activeDeadlineSeconds: Invalid value: 599: must not be less than pullPolicy.timeoutSeconds (600)",
		`{completionPolicy: {activeDeadlineSeconds: 600}}`:              "",
		`{completionPolicy: {type: Never, ttlSecondsAfterFinished: 1}}`: "spec.completionPolicy.ttlSecondsAfterFinished: Forbidden",
		`{completionPolicy: {type: Never, activeDeadlineSeconds: 1}}`:   "spec.completionPolicy.activeDeadlineSeconds: Forbidden",
		`{completionPolicy: {type: Sometimes}}`:                         `spec.completionPolicy.type: Unsupported value: "Sometimes"`,
		`{completionPolicy: {ttlSecondsAfterFinished: -1}}`:             "spec.completionPolicy.ttlSecondsAfterFinished",
		`{imagePullPolicy: Never}`:                                      `spec.imagePullPolicy: Unsupported value: "Never"`,
	} {
		t.Run(spec, func(t *testing.T) {
			errs := Validate(job(t, spec), nil)
			if want == "" {
				assert.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			assert.Contains(t, errs[0].Error(), want)
		})
	}
	empty := job(t, `{}`)
	empty.Spec.Image = ""
	assert.Contains(t, Validate(empty, nil)[0].Error(), "spec.image: Required")
}

func TestUpdates(t *testing.T) {
	old, changed := job(t, `{pullSecrets: [a]}`), job(t, `{pullSecrets: [b]}`)
	assert.True(t, SecretsChanged(changed, old))
	assert.False(t, SecretsChanged(changed, nil))
	invalid := job(t, `{parallelism: 10%}`)
	assert.Empty(t, Validate(invalid, invalid.DeepCopy()), "what is stored already prevents no other change")
	assert.Empty(t, Validate(job(t, `{parallelism: 10%, image: redis}`), invalid), "nor one of the spec")
	assert.Len(t, Validate(job(t, `{parallelism: 20%}`), invalid), 1)

	done := job(t, `{}`)
	done.Status.CompletionTime = new(metav1.NewTime(time.Unix(1, 0)))
	assert.Contains(t, Validate(job(t, `{image: redis}`), done)[0].Error(), "the job has completed; create a new one")
	assert.Empty(t, Validate(job(t, `{completionPolicy: {ttlSecondsAfterFinished: 5}}`), done))
}

// What older releases have stored lacks fields that are set today whenever it is written.
func TestDefaultsAreNoChange(t *testing.T) {
	for name, stored := range map[string]*v1beta1.ImagePullJob{
		"a job that has completed": job(t, `{}`), "a job that nobody could make today": job(t, `{parallelism: 10%}`),
	} {
		t.Run(name, func(t *testing.T) {
			stored.Status.CompletionTime = new(metav1.NewTime(time.Unix(1, 0)))
			labelled := stored.DeepCopy()
			Default(labelled)
			labelled.Labels = map[string]string{"a": "b"}
			assert.Empty(t, Validate(labelled, stored))
			labelled.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(5))
			for _, err := range Validate(labelled, stored) {
				assert.NotContains(t, err.Error(), "the job has completed")
			}
			labelled.Spec.ImagePullPolicy = v1beta1.PullAlways
			assert.Contains(t, Validate(labelled, stored).ToAggregate().Error(), "the job has completed")
		})
	}
}

func TestDefault(t *testing.T) {
	j := job(t, `{pullPolicy: {timeoutSeconds: 30}}`)
	Default(j)
	assert.Equal(t, v1beta1.CompletionAlways, j.Spec.CompletionPolicy.Type)
	assert.EqualValues(t, 30, *j.Spec.PullPolicy.TimeoutSeconds)
	assert.EqualValues(t, 3, *j.Spec.PullPolicy.BackoffLimit)
	assert.Equal(t, v1beta1.PullIfNotPresent, j.Spec.ImagePullPolicy)
	assert.Nil(t, j.Spec.Parallelism)
	again := j.DeepCopy()
	Default(again)
	assert.Equal(t, j, again)
}
