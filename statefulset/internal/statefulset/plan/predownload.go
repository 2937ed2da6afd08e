package plan

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// preDownload has the images of the update revision pulled on the nodes of old pods.
func preDownload(p *pass) {
	if p.FeatureGates.PreDownload {
		p.PreDownload(&p.plan, predownload.Rollout{
			Selector: p.Set.Spec.Selector, Template: p.workload.Revisions.Template, Replicas: p.numbers.replicas,
			Useful: p.pullingIsUseful, UpdatedReady: p.updatedReady(), Settings: pullSettings(p.Set, p.numbers.replicas),
		})
	}
}

// pullingIsUseful reports whether the pods are updated in place, and not all at once.
func (p *pass) pullingIsUseful() bool {
	atOnce := p.numbers.partition == 0 && p.numbers.maxUnavailable >= int(p.numbers.replicas)
	if !p.workload.Policy.InPlace() || atOnce {
		return false
	}
	_, err := p.workload.Revisions.Diff(revision.Hash(p.Chosen.Current), p.Chosen.Update)
	return err == nil
}

// updatedReady counts the pods that prove the update revision.
func (p *pass) updatedReady() int32 {
	n := int32(0)
	for i := range p.pods {
		if p.pods[i].updated && p.pods[i].Ready {
			n++
		}
	}
	return n
}

// pullSettings are what the user says in the strategy, or else in annotations of the set.
func pullSettings(set *v1beta1.StatefulSet, replicas int32) predownload.Settings {
	strategy := rollingUpdate(set).InPlaceUpdateStrategy
	s := predownload.SettingsOf(strategy)
	parallelism, hasParallelism := set.Annotations[contract.ImagePreDownloadParallelismAnnotation]
	timeout, hasTimeout := set.Annotations[contract.ImagePreDownloadTimeoutSecondsAnnotation]
	enough, hasEnough := set.Annotations[contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation]
	s.Configured = s.Configured || hasParallelism || hasTimeout || hasEnough
	if strategy == nil || strategy.ImagePreDownloadMinUpdatedReadyPods == nil {
		s.MinUpdatedReady = atLeast(enough, replicas)
	}
	if s.Parallelism == nil && hasParallelism {
		s.Parallelism = numberOrPercentage(parallelism)
	}
	if seconds, err := strconv.ParseInt(timeout, 10, 32); err == nil && s.TimeoutSeconds == nil {
		s.TimeoutSeconds = new(int32(seconds))
	}
	return s
}

// atLeast is a number of pods or a percentage of replicas, rounded up; 0 for what is neither.
func atLeast(text string, replicas int32) int32 {
	amount := numberOrPercentage(text)
	if amount == nil {
		return 0
	}
	n, err := rollout.Scaled("image-predownload-min-updated-ready-pods", *amount, replicas, rollout.RoundUp)
	if err != nil {
		return 0
	}
	return n
}

// numberOrPercentage reads "3" and "20%", and nil from anything else.
func numberOrPercentage(text string) *intstr.IntOrString {
	if strings.HasSuffix(text, "%") {
		return &intstr.IntOrString{Type: intstr.String, StrVal: text}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	return new(intstr.FromInt32(int32(n)))
}
