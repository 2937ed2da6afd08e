package predownload

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"
)

// Settings are the user's settings of pulling ahead.
type Settings struct {
	// Parallelism is how many nodes pull at a time; nil means one.
	Parallelism *intstr.IntOrString
	// TimeoutSeconds bounds one attempt of a node; nil means 300.
	TimeoutSeconds *int32
	// MinUpdatedReady is how many updated pods must be ready before anything is pulled.
	MinUpdatedReady int32
	// Configured is true if the user set any of this.
	Configured bool
}

// SettingsOf returns the settings in the strategy of in-place updates, which may be nil.
func SettingsOf(s *workload.InPlaceUpdateStrategy) Settings {
	if s == nil {
		return Settings{}
	}
	return Settings{
		Parallelism:     s.ImagePreDownloadParallelism,
		TimeoutSeconds:  s.ImagePreDownloadTimeoutSeconds,
		MinUpdatedReady: ptr.Deref(s.ImagePreDownloadMinUpdatedReadyPods, 0),
		Configured:      s.ImagePreDownloadParallelism != nil || s.ImagePreDownloadTimeoutSeconds != nil || s.ImagePreDownloadMinUpdatedReadyPods != nil,
	}
}

// AnnotatedSettings returns the settings in the strategy of in-place updates, which may be nil, and for fields that it
// lacks those in annotations of the workload. A value that cannot be read counts as absent.
func AnnotatedSettings(strategy *workload.InPlaceUpdateStrategy, annotations map[string]string, replicas int32) Settings {
	s := SettingsOf(strategy)
	parallelism, hasParallelism := annotations[contract.ImagePreDownloadParallelismAnnotation]
	timeout, hasTimeout := annotations[contract.ImagePreDownloadTimeoutSecondsAnnotation]
	enough, hasEnough := annotations[contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation]
	s.Configured = s.Configured || hasParallelism || hasTimeout || hasEnough
	if strategy == nil || strategy.ImagePreDownloadMinUpdatedReadyPods == nil {
		s.MinUpdatedReady = scaled(enough, replicas)
	}
	if s.Parallelism == nil {
		s.Parallelism = parseAmount(parallelism)
	}
	if seconds, err := strconv.ParseInt(timeout, 10, 32); err == nil && s.TimeoutSeconds == nil {
		s.TimeoutSeconds = new(int32(seconds))
	}
	return s
}

// scaled returns a number of pods, or a percentage of replicas rounded up; 0 if the text is neither.
func scaled(text string, replicas int32) int32 {
	amount := parseAmount(text)
	if amount == nil {
		return 0
	}
	n, err := rollout.Scaled("image-predownload-min-updated-ready-pods", *amount, replicas, rollout.RoundUp)
	if err != nil {
		return 0
	}
	return n
}

// parseAmount parses texts such as "3" and "20%". It returns nil for anything else.
func parseAmount(text string) *intstr.IntOrString {
	if strings.HasSuffix(text, "%") {
		return &intstr.IntOrString{Type: intstr.String, StrVal: text}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	return new(intstr.FromInt32(int32(n)))
}
