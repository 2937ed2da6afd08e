package forecast

import (
	"time"

	"github.com/flotilla-project/flotilla/kustomize/progress"
)

// Report has the effects of an edit. It is the output of -o json.
type Report struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Version is the version of the operator that was played, Running the one that the cluster runs; empty if unknown.
	Version string `json:"version"`
	Running string `json:"running,omitempty"`
	// Phase and Message describe the end of the rollout: Complete, Paused, or Failed where it cannot end.
	Phase   progress.Phase `json:"phase"`
	Message string         `json:"message"`
	// Seconds is the time from the edit to the end, or to the last change of a pod where there is no end.
	Seconds float64 `json:"seconds"`
	// Answers are the warnings with which the API server answers the edit.
	Answers []string `json:"answers,omitempty"`
	// InPlace pods are updated in place, Recreated ones are deleted and replaced; Added and Removed ones change the scale.
	InPlace   int `json:"inPlace"`
	Recreated int `json:"recreated"`
	Added     int `json:"added"`
	Removed   int `json:"removed"`
	// LowestAvailable is the fewest available pods at any moment, Available the number before the edit, and MostPods the
	// most pods at once, without those that are terminating.
	LowestAvailable int `json:"lowestAvailable"`
	Available       int `json:"available"`
	MostPods        int `json:"mostPods"`
	// Batches are groups of pods with updates that begin together.
	Batches []Batch `json:"batches,omitempty"`
	// Waits are the reasons for which the rollout waits, without its own limits.
	Waits []Wait `json:"waits,omitempty"`
	// Budgets are those that select pods of the workload.
	Budgets []Budget `json:"budgets,omitempty"`
	// Subsets belong to the WorkloadSpreads of the workload. They have the numbers at the end.
	Subsets []Subset `json:"subsets,omitempty"`
	// Times are the assumed durations of the works of the cluster.
	Times UsedTimes `json:"times"`
	// Assumed are facts that the forecast takes for granted.
	Assumed []string `json:"assumed,omitempty"`
}

// Batch is a group of pods with updates that begin together.
type Batch struct {
	// Seconds is when it begins after the edit.
	Seconds float64 `json:"seconds"`
	// InPlace, Recreated and Added count pods by the kind of change.
	InPlace   int `json:"inPlace,omitempty"`
	Recreated int `json:"recreated,omitempty"`
	Added     int `json:"added,omitempty"`
	// Pods are the names of the pods that are updated or deleted.
	Pods []string `json:"pods,omitempty"`
}

// Wait is a reason for which the rollout waits.
type Wait struct {
	// Seconds is when it begins after the edit, Lasts how long it is so in all.
	Seconds float64 `json:"seconds"`
	Lasts   float64 `json:"lasts"`
	Reason  string  `json:"reason"`
	Message string  `json:"message"`
}

// Budget is a disruption budget that selects pods of the workload.
type Budget struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Desired is how many healthy pods the budget wants, Lowest the fewest that it has at any moment.
	Desired int `json:"desired"`
	Lowest  int `json:"lowest"`
	// Refused is how often it refuses a write.
	Refused int `json:"refused,omitempty"`
	// Broken is true if it is satisfied before the edit, and not at some moment after.
	Broken bool `json:"broken"`
}

// Subset is a subset of a WorkloadSpread.
type Subset struct {
	// Spread is the name of the WorkloadSpread.
	Spread string `json:"spread"`
	Name   string `json:"name"`
	// Pods is how many pods it has, and Limit how many it may have of each revision; nil is no limit.
	Pods  int  `json:"pods"`
	Limit *int `json:"limit,omitempty"`
	// Closed is true if it gets no pods, because some could not be scheduled.
	Closed bool `json:"closed,omitempty"`
}

// UsedTimes are Times in seconds.
type UsedTimes struct {
	Creating float64 `json:"creating"`
	Starting float64 `json:"starting"`
	// Learnt is how many pods have shown these times; 0 means that they are assumed or given.
	Learnt int `json:"learnt"`
}

// Holds reports whether the rollout ends as its spec wants and breaks no budget.
func (f *Report) Holds() bool {
	for _, b := range f.Budgets {
		if b.Broken {
			return false
		}
	}
	return f.Phase != progress.Failed
}

func seconds(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }
