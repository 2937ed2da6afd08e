package admission

import (
	"cmp"
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Default sets absent fields to their defaults. It is idempotent.
func Default(job *v1beta1.BroadcastJob) { DefaultSpec(&job.Spec) }

// DefaultSpec sets absent fields of a spec to their defaults. The pod template stays as it was written: its absent
// fields get their defaults when a pod is made.
func DefaultSpec(spec *v1beta1.BroadcastJobSpec) {
	if spec.Parallelism == nil {
		spec.Parallelism = new(intstr.FromInt32(math.MaxInt32)) // all nodes at a time
	}
	spec.CompletionPolicy.Type = cmp.Or(spec.CompletionPolicy.Type, v1beta1.CompletionAlways)
	spec.FailurePolicy.Type = cmp.Or(spec.FailurePolicy.Type, v1beta1.FailFast)
}
