package v1alpha1

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// AdvancedCronJob creates jobs on a schedule: Jobs, BroadcastJobs or ImageListPullJobs.
// +kubebuilder:object:root=true
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
	Status v1beta1.AdvancedCronJobStatus `json:"status,omitempty,omitzero"`
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
	// concurrencyPolicy sets how a job is handled that is due while another job runs. The default is Allow.
	// +optional
	ConcurrencyPolicy v1beta1.ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
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

// CronJobTemplate is the template of the jobs. Set exactly one member.
type CronJobTemplate struct {
	// jobTemplate is the template of Jobs.
	// +optional
	JobTemplate *batchv1.JobTemplateSpec `json:"jobTemplate,omitempty"`
	// broadcastJobTemplate is the template of BroadcastJobs.
	// +optional
	BroadcastJobTemplate *v1beta1.BroadcastJobTemplateSpec `json:"broadcastJobTemplate,omitempty"`
}
