package admission

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

const (
	jobs   = `{jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}}`
	each   = `{broadcastJobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}}}`
	images = `{imageListPullJobTemplate: {spec: {images: [nginx], completionPolicy: {type: Always}}}}`
)

// cron is an AdvancedCronJob with these fields of its spec.
func cron(t *testing.T, spec string) *v1beta1.AdvancedCronJob {
	t.Helper()
	c := &v1beta1.AdvancedCronJob{}
	c.Name = "cron"
	require.NoError(t, yaml.UnmarshalStrict([]byte("{"+spec+"}"), &c.Spec))
	return c
}

func texts(errs field.ErrorList) (all []string) {
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}

func TestValidate(t *testing.T) {
	for _, test := range []struct{ spec, want string }{
		{`schedule: "*/5 * * * *", template: ` + jobs, ""},
		{`schedule: "0 10 * * ?", timeZone: Asia/Shanghai, template: ` + each, ""},
		{`schedule: "TZ=Asia/Shanghai 0 10 * * *", template: ` + jobs, ""},
		{`schedule: "@daily", concurrencyPolicy: Forbid, template: ` + images, ""},
		{`schedule: "", template: ` + jobs, "spec.schedule: Required value"},
		{`schedule: "x", template: ` + jobs, `spec.schedule: Invalid value: "x": expected exactly 5 fields`},
		{`schedule: "TZ=0", template: ` + jobs, `spec.schedule: Invalid value: "TZ=0": unknown time zone "0"`},
		{`schedule: "0 0 31 2 *", template: ` + jobs, "the schedule matches no time"},
		{`schedule: "TZ=UTC @daily", timeZone: UTC, template: ` + jobs, "spec.timeZone: Invalid value: \"UTC\": timeZone cannot be set when the schedule names a time zone"},
		{`schedule: "@daily", timeZone: "", template: ` + jobs, `spec.timeZone: Invalid value: "": unknown time zone ""`},
		{`schedule: "@daily", timeZone: lOcal, template: ` + jobs, `unknown time zone "lOcal"`},
		{`schedule: "@daily", timeZone: Nowhere/City, template: ` + jobs, `unknown time zone "Nowhere/City"`},
		{`schedule: "@daily", startingDeadlineSeconds: -1, template: ` + jobs, "spec.startingDeadlineSeconds: Invalid value: -1"},
		{`schedule: "@daily", successfulJobsHistoryLimit: -1, template: ` + jobs, "spec.successfulJobsHistoryLimit: Invalid value: -1"},
		{`schedule: "@daily", failedJobsHistoryLimit: -1, template: ` + jobs, "spec.failedJobsHistoryLimit: Invalid value: -1"},
		{`schedule: "@daily", template: {}`, "spec.template: Required value: one of"},
		{`schedule: "@daily", template: {jobTemplate: {}, ` + each[1:], "spec.template.broadcastJobTemplate: Forbidden: there is jobTemplate already"},
		{`schedule: "@daily", template: {broadcastJobTemplate: {spec: {parallelism: 200%, template: {spec: {restartPolicy: Never}}}}}`, "spec.template.broadcastJobTemplate.spec.parallelism: Invalid value"},
		{`schedule: "@daily", concurrencyPolicy: Allow, template: ` + images, "spec.concurrencyPolicy: Invalid value: \"Allow\": only Replace or Forbid"},
		{`schedule: "@daily", template: {imageListPullJobTemplate: {spec: {images: [], completionPolicy: {}}}}`, "spec.template.imageListPullJobTemplate.spec.images: Required value"},
		{`schedule: "@daily", template: {imageListPullJobTemplate: {spec: {images: [a], completionPolicy: {type: Never}}}}`, "spec.completionPolicy.type: Unsupported value: \"Never\""},
		{`schedule: "@daily", template: {imageListPullJobTemplate: {spec: {images: [a], completionPolicy: {activeDeadlineSeconds: 86401}}}}`, "must be no more than 86400"},
		{`schedule: "@daily", template: {imageListPullJobTemplate: {spec: {images: [a], completionPolicy: {activeDeadlineSeconds: 500}}}}`, "must not be less than pullPolicy.timeoutSeconds (600)"},
		{`schedule: "@daily", template: {imageListPullJobTemplate: {spec: {images: [a], completionPolicy: {ttlSecondsAfterFinished: 5}}}}`, "spec.completionPolicy.ttlSecondsAfterFinished: Forbidden"},
	} {
		t.Run(test.spec, func(t *testing.T) {
			found := texts(Validate(cron(t, test.spec), nil))
			if test.want == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Contains(t, found[0], test.want)
		})
	}
}

func TestNamesLeaveRoomForTimes(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "Cron-1": "", strings.Repeat("a", 52): "",
		strings.Repeat("a", 53): "must be no more than 52 characters so that the names of its jobs fit 63", "a.b": "must consist of",
	} {
		c := cron(t, `schedule: "@daily", template: `+jobs)
		c.Name = name
		found := strings.Join(texts(Validate(c, nil)), "")
		assert.Contains(t, found, want, name)
		assert.Equal(t, want == "", found == "", name)
		assert.Empty(t, Validate(c, c), "stored ones stay")
	}
}

// What is stored does not prevent other changes.
func TestOldFaultsAreNotJudged(t *testing.T) {
	old := cron(t, `schedule: "0 0 31 2 *", template: `+jobs)
	now := cron(t, `schedule: "0 0 31 2 *", paused: true, template: `+jobs)
	assert.Empty(t, Validate(now, old))
	now.Spec.Schedule = "x"
	assert.Len(t, Validate(now, old), 1)
}

// An AdvancedCronJob whose time zone is not known makes no job: whoever changes it mends that, too.
func TestAnUnknownTimeZoneIsMendedFirst(t *testing.T) {
	old := cron(t, `schedule: "@daily", timeZone: Nowhere, template: `+jobs)
	now := cron(t, `schedule: "@daily", timeZone: Nowhere, paused: true, template: `+jobs)
	assert.Empty(t, Validate(old, old), "finalizers and labels change all the same")
	assert.Equal(t, []string{`spec.timeZone: Invalid value: "Nowhere": unknown time zone "Nowhere"`}, texts(Validate(now, old)))
	now.Spec.TimeZone = nil
	assert.Empty(t, Validate(now, old))
}

func TestDefaults(t *testing.T) {
	for template, policy := range map[string]v1beta1.ConcurrencyPolicy{jobs: v1beta1.AllowConcurrent, images: v1beta1.ReplaceConcurrent} {
		c := cron(t, `schedule: "@daily", template: `+template)
		want := c.DeepCopy()
		Default(c)
		assert.Equal(t, policy, c.Spec.ConcurrencyPolicy)
		assert.False(t, *c.Spec.Paused)
		assert.Equal(t, [2]int32{3, 1}, [2]int32{*c.Spec.SuccessfulJobsHistoryLimit, *c.Spec.FailedJobsHistoryLimit})
		assert.Equal(t, want.Spec.Template, c.Spec.Template, "templates are stored as they were written")
		again := c.DeepCopy()
		Default(again)
		assert.Equal(t, c, again)
	}
}

// A template without a type of completion was not thought about: it gets what an ImageListPullJob gets.
func TestAListOfImagesIsCompleted(t *testing.T) {
	const schedule = `schedule: "@daily", template: {imageListPullJobTemplate: {spec: `
	for given, want := range map[string]string{
		`{images: [a]}`: `{images: [a], completionPolicy: {type: Always}, pullPolicy: {timeoutSeconds: 600, backoffLimit: 3}, imagePullPolicy: IfNotPresent}`,
		`{images: [a], pullPolicy: {backoffLimit: 1}, imagePullPolicy: Always}`: `{images: [a], completionPolicy: {type: Always}, pullPolicy: {timeoutSeconds: 600, backoffLimit: 1}, imagePullPolicy: Always}`,
		`{images: [a], completionPolicy: {type: Always}}`:                       `{images: [a], completionPolicy: {type: Always}}`,
	} {
		c := cron(t, schedule+given+"}}")
		Default(c)
		assert.Equal(t, cron(t, schedule+want+"}}").Spec.Template, c.Spec.Template, given)
	}
}

func TestTheFirstDifferenceIsNamed(t *testing.T) {
	at := field.NewPath("spec", "template", "jobTemplate")
	before := cron(t, "schedule: x, template: "+jobs).Spec.Template.JobTemplate
	after := before.DeepCopy()
	after.Spec.Template.Spec.Containers[0].Image = "other"
	errs, err := forbidDifference(before, after, at)
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.template.jobTemplate.spec.template.spec.containers[0].image: Forbidden: immutable; create a new AdvancedCronJob"}, texts(errs))
	after = before.DeepCopy()
	after.Labels = map[string]string{}
	errs, err = forbidDifference(before, after, at)
	require.NoError(t, err)
	assert.Empty(t, errs)
	after.Spec.Template.Spec.Containers = append(after.Spec.Template.Spec.Containers, after.Spec.Template.Spec.Containers[0])
	errs, err = forbidDifference(before, after, at)
	require.NoError(t, err)
	assert.Len(t, errs, 1)
}

func TestJobsWithoutAnEndAreWarnedOf(t *testing.T) {
	of := func(kind v1beta1.CompletionPolicyType) []string {
		c := &v1beta1.AdvancedCronJob{}
		c.Spec.Template.BroadcastJobTemplate = &v1beta1.BroadcastJobTemplateSpec{}
		c.Spec.Template.BroadcastJobTemplate.Spec.CompletionPolicy.Type = kind
		return endless(c)
	}
	assert.Empty(t, endless(&v1beta1.AdvancedCronJob{}))
	assert.Empty(t, of(v1beta1.CompletionAlways))
	assert.Len(t, of(v1beta1.CompletionNever), 1)
}
