package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// job reads a spec; its pods restart on failure unless it says otherwise.
func job(t *testing.T, spec string) *v1beta1.BroadcastJob {
	t.Helper()
	j := &v1beta1.BroadcastJob{}
	j.Name = "job"
	fields := map[string]any{"spec": testenv.Fields(t, spec)}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, j))
	if !strings.Contains(spec, "template") {
		j.Spec.Template.Spec.RestartPolicy = "OnFailure"
	}
	return j
}

func TestValidate(t *testing.T) {
	const number = "must be an integer greater than or equal to 0 or a percentage from 0% to 100%"
	for spec, want := range map[string]string{
		`{}`:                               "",
		`{parallelism: 0}`:                 "",
		`{parallelism: 2147483647}`:        "",
		`{parallelism: 0%}`:                "",
		`{parallelism: 100%}`:              "",
		`{parallelism: -1}`:                "spec.parallelism: Invalid value: -1: " + number,
		`{parallelism: 101%}`:              `spec.parallelism: Invalid value: "101%": ` + number,
		`{parallelism: "3"}`:               `spec.parallelism: Invalid value: "3": ` + number,
		`{parallelism: ten}`:               `spec.parallelism: Invalid value: "ten": ` + number,
		`{completionPolicy: {type: Ever}}`: `spec.completionPolicy.type: Unsupported value: "Ever"`,
		`{completionPolicy: {type: Never, activeDeadlineSeconds: 1}}`:                                      "spec.completionPolicy.activeDeadlineSeconds: Forbidden: can only be set when the type is Always",
		`{completionPolicy: {type: Never, ttlSecondsAfterFinished: 1}}`:                                    "spec.completionPolicy.ttlSecondsAfterFinished: Forbidden: can only be set when the type is Always",
		`{completionPolicy: {activeDeadlineSeconds: 0}}`:                                                   "",
		`{completionPolicy: {activeDeadlineSeconds: -1}}`:                                                  "spec.completionPolicy.activeDeadlineSeconds",
		`{completionPolicy: {ttlSecondsAfterFinished: 0}}`:                                                 "",
		`{completionPolicy: {ttlSecondsAfterFinished: -1}}`:                                                "spec.completionPolicy.ttlSecondsAfterFinished",
		`{failurePolicy: {type: Pause, restartLimit: 3}}`:                                                  "",
		`{failurePolicy: {type: Ignore}}`:                                                                  `spec.failurePolicy.type: Unsupported value: "Ignore"`,
		`{failurePolicy: {restartLimit: -1}}`:                                                              "spec.failurePolicy.restartLimit",
		`{template: {spec: {restartPolicy: Never}}}`:                                                       "",
		`{template: {spec: {restartPolicy: Always}}}`:                                                      `spec.template.spec.restartPolicy: Unsupported value: "Always": supported values: "Never", "OnFailure"`,
		`{template: {spec: {}}}`:                                                                           `spec.template.spec.restartPolicy: Unsupported value: "Always"`,
		`{template: {metadata: {labels: {broadcastjob-name: a}}, spec: {restartPolicy: Never}}}`:           `spec.template.metadata.labels[broadcastjob-name]: Forbidden`,
		`{template: {metadata: {labels: {broadcastjob-controller-uid: a}}, spec: {restartPolicy: Never}}}`: `spec.template.metadata.labels[broadcastjob-controller-uid]: Forbidden`,
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
}

func TestPodFailurePoliciesAreThoseOfJobs(t *testing.T) {
	const at = "spec.podFailurePolicy.rules[0]"
	for rule, want := range map[string][]string{
		`{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}`:                                nil,
		`{action: FailJob, onExitCodes: {containerName: main, operator: In, values: [1, 42]}}`:         nil,
		`{action: Count, onExitCodes: {operator: NotIn, values: [0, 1]}}`:                              nil,
		`{action: FailIndex, onPodConditions: [{type: Ready, status: "False"}]}`:                       {at + `.action: Unsupported value: "FailIndex": supported values: "Count", "FailJob", "Ignore"`},
		`{onPodConditions: [{type: Ready}]}`:                                                           {at + ".action: Required value"},
		`{action: Ignore}`:                                                                             {at + ": Invalid value: specify one of onExitCodes and onPodConditions"},
		`{action: Ignore, onExitCodes: {operator: In, values: [1]}, onPodConditions: [{type: Ready}]}`: {at + ": Invalid value: specify one of onExitCodes and onPodConditions"},
		`{action: Ignore, onExitCodes: {containerName: other, operator: In, values: [1]}}`:             {at + `.onExitCodes.containerName: Invalid value: "other"`},
		`{action: Ignore, onExitCodes: {operator: Near, values: [1]}}`:                                 {at + `.onExitCodes.operator: Unsupported value: "Near"`},
		`{action: Ignore, onExitCodes: {values: [1]}}`:                                                 {at + ".onExitCodes.operator: Required value"},
		`{action: Ignore, onExitCodes: {operator: In, values: []}}`:                                    {at + ".onExitCodes.values: Required value"},
		`{action: Ignore, onExitCodes: {operator: In, values: [0]}}`:                                   {at + ".onExitCodes.values[0]: Invalid value: 0"},
		`{action: Ignore, onExitCodes: {operator: In, values: [1, 1]}}`:                                {at + ".onExitCodes.values[1]: Duplicate value: 1"},
		`{action: Ignore, onExitCodes: {operator: In, values: [2, 1]}}`:                                {at + ".onExitCodes.values: Invalid value: [2,1]: must be in ascending order"},
		`{action: Ignore, onPodConditions: [{status: "Maybe"}]}`:                                       {at + ".onPodConditions[0].type: Required value", at + `.onPodConditions[0].status: Unsupported value: "Maybe"`},
	} {
		t.Run(rule, func(t *testing.T) {
			spec := `{podFailurePolicy: {rules: [` + rule + `]}, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}`
			errs := Validate(job(t, spec), nil)
			require.Len(t, errs, len(want), errs.ToAggregate())
			for i := range want {
				assert.Contains(t, errs[i].Error(), want[i])
			}
		})
	}
	errs := Validate(job(t, `{podFailurePolicy: {rules: []}, template: {spec: {restartPolicy: OnFailure}}}`), nil)
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0].Error(), "spec.podFailurePolicy: Forbidden: can only be set when spec.template.spec.restartPolicy is Never")
}

func TestNamesAreValuesOfLabels(t *testing.T) {
	for name, want := range map[string]string{
		"a": "", "a-1": "", "": "", strings.Repeat("a", 63): "",
		"a.b-c":                 "must consist of letters, digits and '-'",
		strings.Repeat("a", 64): "must be no more than 63 characters",
	} {
		j := job(t, `{}`)
		j.Name = name
		errs := Validate(j, nil)
		if want == "" {
			assert.Empty(t, errs, name)
		} else if assert.Len(t, errs, 1, name) {
			assert.Contains(t, errs[0].Error(), "metadata.name: Invalid value: \""+name+"\": "+want)
		}
		j.Spec.Paused = true
		assert.Empty(t, Validate(j, job(t, `{}`)), "a stored name stays")
	}
}

// What is stored may be touched although new objects like it are refused.
func TestAStoredSpecIsNotJudged(t *testing.T) {
	stored := job(t, `{failurePolicy: {type: Ignore}}`)
	assert.Empty(t, Validate(stored.DeepCopy(), stored))
	changed := stored.DeepCopy()
	changed.Spec.Paused = true
	assert.Empty(t, Validate(changed, stored), "it can be paused")
	changed.Spec.FailurePolicy.Type = "Other"
	assert.Len(t, Validate(changed, stored), 1)
}

func TestDefaults(t *testing.T) {
	j := job(t, `{template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}`)
	before := j.DeepCopy()
	Default(j)
	assert.Equal(t, v1beta1.CompletionAlways, j.Spec.CompletionPolicy.Type)
	assert.Equal(t, v1beta1.FailFast, j.Spec.FailurePolicy.Type)
	assert.Equal(t, new(intstr.FromInt32(2147483647)), j.Spec.Parallelism)
	assert.Equal(t, before.Spec.Template, j.Spec.Template, "templates are stored as they were written")
	once := j.DeepCopy()
	Default(j)
	assert.Equal(t, once, j)
	chosen := job(t, `{parallelism: 10%, completionPolicy: {type: Never}, failurePolicy: {type: Continue}}`)
	want := chosen.DeepCopy()
	Default(chosen)
	assert.Equal(t, want, chosen)
}

func TestAnEditAfterTheEndIsWarnedOf(t *testing.T) {
	old, paused, ttl := job(t, `{}`), job(t, `{paused: true}`), job(t, `{completionPolicy: {ttlSecondsAfterFinished: 1}}`)
	assert.Empty(t, tooLate(paused, nil))
	assert.Empty(t, tooLate(paused, old))
	old.Status.CompletionTime = new(metav1.Now())
	assert.Len(t, tooLate(paused, old), 1)
	assert.Empty(t, tooLate(ttl, old), "it is followed")
}
