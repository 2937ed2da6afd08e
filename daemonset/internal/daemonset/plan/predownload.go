package plan

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"
)

// preDownload has the images of the update revision pulled on the nodes of old pods, whether these are updated in place
// or recreated.
func preDownload(p *pass) {
	if !p.FeatureGates.PreDownload {
		return
	}
	from, updatedReady := p.oldRevisions()
	p.PreDownload(&p.plan, predownload.Rollout{
		Selector: p.Set.Spec.Selector, Template: p.workload.Revisions.Template, Replicas: int32(p.desired), From: from,
		Useful:       func() bool { return p.numbers.partition > 0 || p.numbers.maxUnavailable < p.desired },
		UpdatedReady: updatedReady, Settings: pullSettings(p.Set.Annotations, p.desired),
	})
}

// oldRevisions are the revisions that the update takes pods from, and how many ready pods prove the new one. With type
// OnDelete there are none.
func (p *pass) oldRevisions() (from []*appsv1.ControllerRevision, updatedReady int32) {
	hashes := map[string]bool{}
	for i := range p.pods {
		switch o := &p.pods[i]; {
		case !o.Active || o.foreign:
		case !o.updated:
			hashes[o.Revision] = true
		case o.Ready:
			updatedReady++
		}
	}
	if onDelete(p.Set) {
		return nil, updatedReady
	}
	return slices.DeleteFunc(slices.Clone(p.Revisions), func(r *appsv1.ControllerRevision) bool { return !hashes[revision.Hash(r)] }), updatedReady
}

// pullSettings are what the user says in annotations of the set.
func pullSettings(annotations map[string]string, desired int) predownload.Settings {
	var s predownload.Settings
	parallelism, hasParallelism := annotations[contract.ImagePreDownloadParallelismAnnotation]
	timeout, hasTimeout := annotations[contract.ImagePreDownloadTimeoutSecondsAnnotation]
	enough, hasEnough := annotations[contract.ImagePreDownloadMinUpdatedReadyPodsAnnotation]
	s.Configured = hasParallelism || hasTimeout || hasEnough
	s.Parallelism = amountOf(parallelism)
	if seconds, err := strconv.ParseInt(timeout, 10, 32); err == nil {
		s.TimeoutSeconds = new(int32(seconds))
	}
	if amount := amountOf(enough); amount != nil {
		n, err := rollout.Scaled("image-predownload-min-updated-ready-pods", *amount, int32(desired), rollout.RoundUp)
		if err == nil {
			s.MinUpdatedReady = n
		}
	}
	return s
}

// amountOf reads "3" and "20%", and nil from anything else.
func amountOf(text string) *intstr.IntOrString {
	if strings.HasSuffix(text, "%") {
		return &intstr.IntOrString{Type: intstr.String, StrVal: text}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil
	}
	return new(intstr.FromInt32(int32(n)))
}
