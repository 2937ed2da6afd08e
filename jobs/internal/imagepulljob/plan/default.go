package plan

import (
	"cmp"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// DefaultTemplate sets absent fields to their defaults, but for imagePullPolicy.
func DefaultTemplate(t *v1beta1.ImagePullJobTemplate) {
	t.CompletionPolicy.Type = cmp.Or(t.CompletionPolicy.Type, v1beta1.CompletionAlways)
	if t.PullPolicy == nil {
		t.PullPolicy = &v1beta1.PullPolicy{}
	}
	if t.PullPolicy.TimeoutSeconds == nil {
		t.PullPolicy.TimeoutSeconds = new(int32(v1beta1.DefaultPullTimeoutSeconds))
	}
	if t.PullPolicy.BackoffLimit == nil {
		t.PullPolicy.BackoffLimit = new(int32(v1beta1.DefaultPullBackoffLimit))
	}
}
