package admission

import (
	"fmt"
	"strings"
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
			TimeoutSeconds: new(int32(v1beta1.DefaultTimeoutSeconds)), BackoffLimit: new(int32(v1beta1.DefaultBackoffLimit)), TTLSecondsAfterFinished: new(int32(60)),
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

func tagged(n int) *v1beta1.NodeImage {
	o := object("x")
	image := o.Spec.Images["x"]
	for i := range n {
		image.Tags = append(image.Tags, good(fmt.Sprint(i)))
	}
	o.Spec.Images["x"] = image
	return o
}

func secrets(n int) *v1beta1.NodeImage {
	o := object("x", good("1"))
	image := o.Spec.Images["x"]
	for i := range n {
		image.PullSecrets = append(image.PullSecrets, v1beta1.SecretReference{Name: fmt.Sprint(i)})
	}
	o.Spec.Images["x"] = image
	return o
}

func sandbox(size int) *v1beta1.NodeImage {
	o := object("x", good("1"))
	image := o.Spec.Images["x"]
	image.SandboxConfig = &v1beta1.SandboxConfig{Annotations: map[string]string{"a": strings.Repeat("x", size)}}
	o.Spec.Images["x"] = image
	return o
}

// full has n images of 4 KB each.
func full(n int) *v1beta1.NodeImage {
	o := many(n)
	for name, image := range o.Spec.Images {
		image.SandboxConfig = sandbox(4000).Spec.Images["x"].SandboxConfig
		o.Spec.Images[name] = image
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
		{"as many tags as may be", tagged(64), nil, ""},
		{"one tag more", tagged(65), nil, "spec.images[x].tags: Too many: 65: at most 64 tags of an image"},
		{"too many tags were there before", tagged(65), tagged(66), ""},
		{"too many secrets", secrets(65), nil, "spec.images[x].pullSecrets: Too many: 65: at most 64 pull secrets of an image"},
		{"too many secrets were there before", secrets(65), secrets(65), ""},
		{"a sandbox", sandbox(4000), nil, ""},
		{"a large sandbox", sandbox(5000), nil, "spec.images[x].sandboxConfig: Too long: 5001 bytes of labels and annotations, at most 4096"},
		{"a large sandbox was there before", sandbox(5000), sandbox(5000), ""},
		{"a large spec", full(70), nil, "spec: Too long: "},
		{"a large spec was there before", full(70), full(70), ""},
		{"the long name of an image", object("docker.io/library/nginx", good("1")), nil, `write it as "nginx"`},
		{"another long name", object("index.docker.io/foo/bar", good("1")), nil, `write it as "foo/bar"`},
		{"a long name was there before", object("library/nginx", good("1")), object("library/nginx", good("1")), ""},
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
