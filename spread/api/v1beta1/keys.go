package v1beta1

// Annotations of pods and of WorkloadSpreads.
const (
	// MatchedAnnotation is set on pods: the JSON of a Match.
	MatchedAnnotation = "apps.kruise.io/matched-workloadspread"
	// IgnorePatchMetadataAnnotation set to "true" on a WorkloadSpread, in any case of letters, keeps the labels and
	// annotations of a subset's patch off pods that existed before they belonged to the subset.
	IgnorePatchMetadataAnnotation = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"
	// ReplacedCostAnnotation is set on pods that had a deletion cost of another client. Its value is the earlier cost,
	// which the pods get back when their WorkloadSpread is gone.
	ReplacedCostAnnotation = "workloadspread.kruise.io/replaced-pod-deletion-cost"
)

// NamespaceLabel marks namespaces that have a WorkloadSpread, with value "true". The operator keeps it; webhooks are
// called for pods of namespaces that have it.
const NamespaceLabel = "apps.kruise.io/workload-spread"

// VersionIgnored is the key in status.versionedSubsetStatuses of pods whose revision does not count.
const VersionIgnored = "versionIgnored"

// Condition of a subset.
const (
	// SubsetSchedulable is the only type of a subset's condition. It stands on subsets of a WorkloadSpread that reschedules.
	SubsetSchedulable = "Schedulable"
	// ReasonSufficient is the reason of True.
	ReasonSufficient = "Sufficient"
	// ReasonPodUnschedulable is the reason of False.
	ReasonPodUnschedulable = "PodUnschedulable"
	// ReasonUnknown stands for the reason that a v1alpha1 condition lacks.
	ReasonUnknown = "Unknown"
)

// Conditions of a WorkloadSpread.
const (
	// TargetFound shows whether the workload is there and can be read.
	TargetFound = "TargetFound"
	// ReasonFound means that the workload is there.
	ReasonFound = "Found"
	// ReasonNotFound means that there is no such workload, or no such kind.
	ReasonNotFound = "NotFound"
	// ReasonUnreadable means that the operator may not read the workload, or that its replicas are not where the user names
	// them.
	ReasonUnreadable = "Unreadable"
	// AllPlaced shows whether every active pod of the workload is in a subset.
	AllPlaced = "AllPlaced"
	// ReasonPlaced is the reason of True.
	ReasonPlaced = "Placed"
	// ReasonWithoutSubset is the reason of False.
	ReasonWithoutSubset = "WithoutSubset"
)

// Conditions of a WorkloadSpread that are True, or absent.
const (
	// RescheduleLimited means that pods which cannot be scheduled are not deleted, because the workload would fail.
	RescheduleLimited = "RescheduleLimited"
	// ReasonBackoffLimit is its reason: the Job has as many failed pods as its backoffLimit allows.
	ReasonBackoffLimit = "BackoffLimit"
	// Overlapped means that an older WorkloadSpread has some of the pods, or all.
	Overlapped = "Overlapped"
	// ReasonOlderWorkloadSpread is its reason.
	ReasonOlderWorkloadSpread = "OlderWorkloadSpread"
)

// Match is the value of MatchedAnnotation.
type Match struct {
	// Name is the WorkloadSpread, in the pod's namespace.
	Name string `json:"name"`
	// Subset is the name of its subset; empty for a pod that has a deletion cost because no subset fits it.
	Subset string `json:"subset"`
	// UID is the key in creatingPods of a pod that had no name yet when it was created; otherwise that key is its name.
	UID string `json:"uid,omitempty"`
	// Released is true once the deletion cost that came with the match has been taken off.
	Released bool `json:"released,omitempty"`
}
