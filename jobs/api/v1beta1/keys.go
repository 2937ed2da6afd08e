package v1beta1

// Keys of an AdvancedCronJob and of the jobs that it makes.
const (
	// ScheduledAtAnnotation of a job is the time for which it was made, in RFC 3339.
	ScheduledAtAnnotation = "apps.kruise.io/scheduled-at"
	// RunNowAnnotation of an AdvancedCronJob asks for one job at once, in addition to the jobs of the schedule. Each value is
	// followed once.
	RunNowAnnotation = "apps.kruise.io/run-now"
	// TemplateAnnotation stands on a v1alpha1 AdvancedCronJob: the JSON of spec.template.imageListPullJobTemplate,
	// which that version has no field for.
	TemplateAnnotation = "apps.kruise.io/v1beta1-advancedcronjob-template"
)

// Labels of the pods of a BroadcastJob.
const (
	// BroadcastJobNameLabel is the name of the job.
	BroadcastJobNameLabel = "broadcastjob-name"
	// BroadcastJobUIDLabel is the UID of the job.
	BroadcastJobUIDLabel = "broadcastjob-controller-uid"
)

// AcknowledgedFailuresAnnotation of a BroadcastJob has the UIDs of failed pods, separated by commas, for which the job
// was paused: they do not pause it again.
const AcknowledgedFailuresAnnotation = "apps.kruise.io/broadcastjob-acknowledged-failures"

// Environment variables that make a container of a job's pod a sidecar, which is stopped when all main containers have
// ended. Their values are literal.
const (
	// TerminateSidecarEnv set to "true" has the sidecar stopped on a real node.
	TerminateSidecarEnv = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
	// TerminateSidecarImageEnv is the image that replaces the sidecar's on a virtual node: one that exits at once with
	// code 0.
	TerminateSidecarImageEnv = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
	// IgnoreSidecarExitCodeEnv set to "true" together with TerminateSidecarEnv keeps the sidecar's exit code from deciding the
	// phase of the pod.
	IgnoreSidecarExitCodeEnv = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
)

// ProtectionFinalizer keeps an ImagePullJob until the secrets that were copied for it are released.
const ProtectionFinalizer = "apps.kruise.io/deletion-protection"

// Keys of copies of pull secrets, in the namespace that node agents may read.
const (
	// SecretSourceAnnotation names the secret that was copied, as namespace/name.
	SecretSourceAnnotation = "imagepulljobs.kruise.io/source-key"
	// SecretReferencesAnnotation names the ImagePullJobs that use the copy, as namespace/name, sorted and separated by
	// commas.
	SecretReferencesAnnotation = "imagepulljobs.kruise.io/references"
	// SecretModeAnnotation is SecretModeBatch for a copy that all jobs share.
	SecretModeAnnotation = "imagepulljobs.kruise.io/mode"
	// SecretModeBatch marks a copy that all jobs share.
	SecretModeBatch = "batch"
	// SecretSourceUIDLabel is the UID of the secret that was copied. It alone marks copies of older releases.
	SecretSourceUIDLabel = "imagepulljobs.kruise.io/source-uid"
)
