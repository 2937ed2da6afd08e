package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdvancedCronJob creates jobs on a schedule: Jobs, BroadcastJobs or ImageListPullJobs.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=acj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule",description="The schedule."
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".status.type",description="The kind of the jobs."
// +kubebuilder:printcolumn:name="LastScheduleTime",type="date",JSONPath=".status.lastScheduleTime",description="The time since the last job was due."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the AdvancedCronJob was created."
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Scheduling\")].reason",description="The reason of condition Scheduling."
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Scheduling\")].message",description="The message of condition Scheduling."
type AdvancedCronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the schedule and the template of the jobs.
	// +optional
	Spec AdvancedCronJobSpec `json:"spec,omitempty"`
	// status has the jobs that were created.
	// +optional
	Status AdvancedCronJobStatus `json:"status,omitempty,omitzero"`
}

// AdvancedCronJobList is a list of AdvancedCronJobs.
// +kubebuilder:object:root=true
type AdvancedCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the AdvancedCronJobs.
	Items []AdvancedCronJob `json:"items"`
}

// AdvancedCronJobSpec has the schedule and the template of the jobs.
type AdvancedCronJobSpec struct {
	// schedule is in the format of cron, with five fields or a descriptor such as @daily.
	// +kubebuilder:validation:MinLength=0
	Schedule string `json:"schedule"`
	// timeZone is the IANA name of the time zone of the schedule. The default is the time zone of the operator,
	// which is UTC in its image.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`
	// startingDeadlineSeconds is how late a job may be created. The default is any time.
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// concurrencyPolicy sets how a job is handled that is due while another job runs. The default is Allow, and Replace
	// with an imageListPullJobTemplate.
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// paused stops the creation of jobs while it is true.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// successfulJobsHistoryLimit is how many jobs that succeeded are kept. The default is 3.
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// failedJobsHistoryLimit is how many jobs that failed are kept. The default is 1.
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
	// template is the template of the jobs. Set exactly one member.
	Template CronJobTemplate `json:"template"`
}

// ConcurrencyPolicy sets how a job is handled that is due while another job runs.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// Values of ConcurrencyPolicy.
const (
	// AllowConcurrent creates the job in addition to the others.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent delays the job until the other job has ended.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the running jobs and creates the new one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobTemplate is the template of the jobs. Set exactly one member.
type CronJobTemplate struct {
	// jobTemplate is the template of Jobs.
	// +optional
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`
	// broadcastJobTemplate is the template of BroadcastJobs.
	// +optional
	BroadcastJobTemplate *BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
	// imageListPullJobTemplate is the template of ImageListPullJobs.
	// +optional
	ImageListPullJobTemplate *ImageListPullJobTemplateSpec `json:"imageListPullJobTemplate,omitempty"`
}

// BroadcastJobTemplateSpec is the template of BroadcastJobs.
type BroadcastJobTemplateSpec struct {
	// metadata has the labels and annotations of the jobs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the spec of the jobs.
	// +optional
	Spec BroadcastJobSpec `json:"spec,omitempty"`
}

// ImageListPullJobTemplateSpec is the template of ImageListPullJobs.
type ImageListPullJobTemplateSpec struct {
	// metadata has the labels and annotations of the jobs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the spec of the jobs.
	// +optional
	Spec ImageListPullJobSpec `json:"spec,omitempty"`
}

// TemplateKind is the kind of the created jobs.
type TemplateKind string

// Values of TemplateKind.
const (
	TemplateJob              TemplateKind = "Job"
	TemplateBroadcastJob     TemplateKind = "BroadcastJob"
	TemplateImageListPullJob TemplateKind = "ImageListPullJob"
)

// AdvancedCronJobStatus has the jobs that were created.
type AdvancedCronJobStatus struct {
	// type is the kind of the jobs.
	// +optional
	Type TemplateKind `json:"type,omitempty"`
	// active are the running jobs.
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// lastScheduleTime is when the last job was due. It only increases.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// lastSuccessfulTime is when a job last completed with success.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// nextScheduleTime is when the next job is due; absent while the AdvancedCronJob is paused or its schedule is
	// invalid.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// missedRuns are the last 10 times at which a due job was skipped, oldest first.
	// +optional
	// +listType=atomic
	MissedRuns []MissedRun `json:"missedRuns,omitempty"`
	// conditions has condition Scheduling, which reports whether jobs are created on schedule, with the reason. After the
	// first run has ended it also has condition LastRunSucceeded, which reports whether the last ended run has succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastRunNow is the value of annotation apps.kruise.io/run-now that last created a job.
	// +optional
	LastRunNow string `json:"lastRunNow,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// CronJobScheduling is the type of the condition that shows whether jobs are created on schedule.
const CronJobScheduling = "Scheduling"

// CronJobLastRunSucceeded is the type of the condition that shows whether the run that ended last has succeeded. It is
// absent until a run has ended.
const CronJobLastRunSucceeded = "LastRunSucceeded"

// MaxMissedRuns is how many missed runs a status lists.
const MaxMissedRuns = 10

// MissedRun is a time, or several in a row, at which a due job was skipped.
type MissedRun struct {
	// scheduledAt is when the job was due; of several, the last one.
	ScheduledAt metav1.Time `json:"scheduledAt"`
	// count is how many jobs in a row were skipped for the same reason.
	// +optional
	Count int32 `json:"count,omitempty"`
	// reason is one word for machines.
	Reason string `json:"reason"`
}
