package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

var now = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

func good(name string) v1beta1.ImageTagSpec {
	return v1beta1.ImageTagSpec{
		Tag: name, CreatedAt: new(metav1.NewTime(now)),
		PullPolicy: &v1beta1.ImageTagPullPolicy{
			TimeoutSeconds: new(int32(defaultTimeoutSeconds)), BackoffLimit: new(int32(defaultBackoffLimit)), TTLSecondsAfterFinished: new(int32(60)),
		},
	}
}

func object(image string, tags ...v1beta1.ImageTagSpec) *v1beta1.NodeImage {
	o := &v1beta1.NodeImage{}
	o.Spec.Images = map[string]v1beta1.ImageSpec{image: {Tags: tags}}
	return o
}

func TestDefaultsAreWrittenOut(t *testing.T) {
	bare := v1beta1.ImageTagSpec{Tag: "b", PullPolicy: &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(60))}}
	own := good("a")
	own.PullPolicy.TimeoutSeconds, own.PullPolicy.BackoffLimit = new(int32(5)), new(int32(0))
	o := object("nginx", bare, own, v1beta1.ImageTagSpec{Tag: "c"})

	Default(o, now)

	empty := good("c")
	empty.PullPolicy.TTLSecondsAfterFinished = nil
	want := object("nginx", own, good("b"), empty)
	assert.Equal(t, want, o)
	Default(o, now.Add(time.Hour))
	assert.Equal(t, want, o, "what was defaulted once stays")
}

func many(n int) *v1beta1.NodeImage {
	o := object("nginx", good("1"))
	for i := range n - 1 {
		o.Spec.Images[fmt.Sprintf("image-%03d", i)] = v1beta1.ImageSpec{Tags: []v1beta1.ImageTagSpec{good("1")}}
	}
	return o
}

func with(change func(*v1beta1.ImageTagSpec)) v1beta1.ImageTagSpec {
	tag := good("1")
	change(&tag)
	return tag
}

func TestRules(t *testing.T) {
	const digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	noTTL := with(func(t *v1beta1.ImageTagSpec) { t.PullPolicy = &v1beta1.ImageTagPullPolicy{} })
	cases := []struct {
		name     string
		now, old *v1beta1.NodeImage
		want     string
	}{
		{"nothing", &v1beta1.NodeImage{}, nil, ""},
		{"a tag and a digest", object("nginx", good("1"), good(digest)), nil, ""},
		{"as many images as may be", many(256), nil, ""},
		{"one more", many(257), nil, "spec.images: Too many: 257: at most 256 images per node"},
		{"too many were there before", many(257), many(258), ""},
		{"an image without a name", object("", good("1")), nil, "spec.images[]: Required value"},
		{"a tag without a name", object("x", good("")), nil, "spec.images[x].tags[0].tag: Required value"},
		{"no tag", object("x", good("a b")), nil, `spec.images[x].tags[0].tag: Invalid value: "a b"`},
		{"no image", object("Upper", good("1")), nil, "must be lowercase"},
		{"a tag twice", object("x", good("1"), good("1")), nil, `spec.images[x].tags[1].tag: Duplicate value: "1"`},
		{"without a pull policy", object("x", with(func(t *v1beta1.ImageTagSpec) { t.PullPolicy = nil })), nil, "spec.images[x].tags[0].pullPolicy: Required value"},
		{"nothing bounds its life", object("x", noTTL), nil, "spec.images[x].tags[0].pullPolicy.ttlSecondsAfterFinished: Required value"},
		{"nothing bounded its life before", object("x", noTTL), object("x", noTTL), ""},
		{"negative version", object("x", with(func(t *v1beta1.ImageTagSpec) { t.Version = -1 })), nil, "spec.images[x].tags[0].version: Invalid value: -1: must be 0 or more"},
		{"without a time of creation", object("x", with(func(t *v1beta1.ImageTagSpec) { t.CreatedAt = nil })), nil, "spec.images[x].tags[0].createdAt: Required value"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			errs := Validate(c.now, c.old)
			if c.want == "" {
				assert.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			assert.Contains(t, errs[0].Error(), c.want)
		})
	}
}
