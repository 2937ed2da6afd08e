package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdvancedCronJob makes jobs by a schedule: Jobs, BroadcastJobs or ImageListPullJobs.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=acj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Schedule",type="string",JSONPath=".spec.schedule",description="The schedule."
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".status.type",description="The kind of the jobs."
// +kubebuilder:printcolumn:name="LastScheduleTime",type="date",JSONPath=".status.lastScheduleTime",description="The time since the last job was due."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the AdvancedCronJob was created."
type AdvancedCronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which jobs are made, and when.
	// +optional
	Spec AdvancedCronJobSpec `json:"spec,omitempty"`
	// status says which jobs were made.
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

// AdvancedCronJobSpec says which jobs are made, and when.
type AdvancedCronJobSpec struct {
	// schedule is in the format of cron, with five fields or a descriptor such as @daily.
	// +kubebuilder:validation:MinLength=0
	Schedule string `json:"schedule"`
	// timeZone is the IANA name of the time zone of the schedule. Absent means that of the operator, which is UTC in its
	// image.
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`
	// startingDeadlineSeconds is how late a job may be made. Absent means any time.
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// concurrencyPolicy says what happens when a job is due while another one runs. The default is Allow, and Replace
	// with an imageListPullJobTemplate.
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// paused makes no jobs while it is true.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// successfulJobsHistoryLimit is how many jobs that succeeded are kept. The default is 3.
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// failedJobsHistoryLimit is how many jobs that failed are kept. The default is 1.
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
	// template is what jobs are made from. Exactly one member is set.
	Template CronJobTemplate `json:"template"`
}

// ConcurrencyPolicy says what happens when a job is due while another one runs.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// Values of ConcurrencyPolicy.
const (
	// AllowConcurrent makes the job beside the others.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent makes no job as long as another one runs.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the jobs that run.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobTemplate is what jobs are made from. Exactly one member is set.
type CronJobTemplate struct {
	// jobTemplate makes Jobs.
	// +optional
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`
	// broadcastJobTemplate makes BroadcastJobs.
	// +optional
	BroadcastJobTemplate *BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
	// imageListPullJobTemplate makes ImageListPullJobs.
	// +optional
	ImageListPullJobTemplate *ImageListPullJobTemplateSpec `json:"imageListPullJobTemplate,omitempty"`
}

// BroadcastJobTemplateSpec is what BroadcastJobs are made from.
type BroadcastJobTemplateSpec struct {
	// metadata has the labels and annotations of the jobs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the jobs.
	// +optional
	Spec BroadcastJobSpec `json:"spec,omitempty"`
}

// ImageListPullJobTemplateSpec is what ImageListPullJobs are made from.
type ImageListPullJobTemplateSpec struct {
	// metadata has the labels and annotations of the jobs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is that of the jobs.
	// +optional
	Spec ImageListPullJobSpec `json:"spec,omitempty"`
}

// TemplateKind is the kind of the jobs that are made.
type TemplateKind string

// Values of TemplateKind.
const (
	TemplateJob              TemplateKind = "Job"
	TemplateBroadcastJob     TemplateKind = "BroadcastJob"
	TemplateImageListPullJob TemplateKind = "ImageListPullJob"
)

// AdvancedCronJobStatus says which jobs were made.
type AdvancedCronJobStatus struct {
	// type is the kind of the jobs.
	// +optional
	Type TemplateKind `json:"type,omitempty"`
	// active are the jobs that run.
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// lastScheduleTime is when the last job was due. It never goes back.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// lastSuccessfulTime is when a job last completed with success.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// nextScheduleTime is when the next job is due; absent while the AdvancedCronJob is paused or its schedule cannot be
	// followed.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// missedRuns are the last 10 times at which a job was due and not made, oldest first.
	// +optional
	// +listType=atomic
	MissedRuns []MissedRun `json:"missedRuns,omitempty"`
	// conditions has the condition Scheduling: whether jobs are made as the schedule says, and if not, why. Once a run has
	// ended it has the condition LastRunSucceeded, too: whether the run that ended last has succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastRunNow is the value of annotation apps.kruise.io/run-now that was followed last.
	// +optional
	LastRunNow string `json:"lastRunNow,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// CronJobScheduling is the type of the condition that says whether jobs are made as the schedule says.
const CronJobScheduling = "Scheduling"

// CronJobLastRunSucceeded is the type of the condition that says whether the run that ended last has succeeded. It is
// absent until a run has ended.
const CronJobLastRunSucceeded = "LastRunSucceeded"

// MaxMissedRuns is how many missed runs a status tells of.
const MaxMissedRuns = 10

// MissedRun is a time, or several in a row, at which a job was due and not made.
type MissedRun struct {
	// scheduledAt is when the job was due; of several, the last one.
	ScheduledAt metav1.Time `json:"scheduledAt"`
	// count is how many jobs in a row were not made for the same reason.
	// +optional
	Count int32 `json:"count,omitempty"`
	// reason is one word for machines.
	Reason string `json:"reason"`
}
