package admission

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Default sets absent fields of tags to their defaults, and sorts the tags. It is idempotent.
func Default(object *v1beta1.NodeImage, now time.Time) {
	for name := range object.Spec.Images {
		tags := object.Spec.Images[name].Tags // the list is shared with the map's value
		slices.SortStableFunc(tags, func(a, b v1beta1.ImageTagSpec) int { return cmp.Compare(a.Tag, b.Tag) })
		for i := range tags {
			defaultTag(&tags[i], now)
		}
	}
}

func defaultTag(tag *v1beta1.ImageTagSpec, now time.Time) {
	if tag.CreatedAt == nil {
		tag.CreatedAt = new(metav1.NewTime(now))
	}
	if tag.PullPolicy == nil {
		tag.PullPolicy = &v1beta1.ImageTagPullPolicy{}
	}
	if tag.PullPolicy.TimeoutSeconds == nil {
		tag.PullPolicy.TimeoutSeconds = new(int32(v1beta1.DefaultTimeoutSeconds))
	}
	if tag.PullPolicy.BackoffLimit == nil {
		tag.PullPolicy.BackoffLimit = new(int32(v1beta1.DefaultBackoffLimit))
	}
}
