package nodeimage_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// A server that refuses writes to NodeImages hears little of them, however much happens to them, and what was
// wanted happens soon after.
func TestARefusedControllerIsQuiet(t *testing.T) {
	env.Need(t)
	refusing := map[string]*faults.Refusing{}
	for answer, err := range faults.Refusals() {
		for _, part := range []string{"spec", "status"} {
			name := strings.ReplaceAll(part+"-"+answer, " ", "-")
			refusing[name] = &faults.Refusing{Err: err, For: 11 * time.Second, Of: func(r *http.Request) bool {
				return faults.IsWrite(r) && strings.Contains(r.URL.Path, "/nodeimages/"+name)
			}}
		}
	}
	creations := &faults.Refusing{Err: faults.Refusals()["403 forbidden"], For: 11 * time.Second, Of: func(r *http.Request) bool {
		return faults.IsWrite(r) && strings.HasSuffix(r.URL.Path, "/nodeimages")
	}}
	all := append(slices.Collect(maps.Values(refusing)), creations)
	givenControllerOf(t, faults.Over(env, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		for _, f := range all {
			if f.Of(r) {
				return f.Send(r, next)
			}
		}
		return next.RoundTrip(r)
	}))
	c := env.Client(t)
	node := givenNode(t, c, "refused", time.Hour, nil)
	for name := range refusing {
		tags := []v1beta1.ImageTagSpec{wanted("1", 11*time.Minute)}
		if strings.HasPrefix(name, "spec") {
			tags = append(tags, v1beta1.ImageTagSpec{Tag: "over"})
		}
		givenImage(t, c, name, map[string]v1beta1.ImageSpec{"nginx": {Tags: tags}})
	}
	for i := 0; slices.ContainsFunc(all, func(f *faults.Refusing) bool { return !f.Over() }); i++ {
		touch(t, c, node, i)
		for name := range refusing {
			touch(t, c, &v1beta1.NodeImage{}, i, name)
		}
		<-time.After(500 * time.Millisecond)
	}
	eventually(t, c, "refused", func(*assert.CollectT, *v1beta1.NodeImage) {})
	for name := range refusing {
		eventually(t, c, name, func(collect *assert.CollectT, image *v1beta1.NodeImage) {
			assert.Len(collect, image.Spec.Images["nginx"].Tags, 1)
			assert.EqualValues(collect, 1, image.Status.Failed)
		})
	}
	for _, f := range all {
		assert.Equal(t, 1, f.AssertQuiet(t, 2))
	}
}

// touch changes an annotation, as anybody may at any time.
func touch(t *testing.T, c client.Client, o client.Object, i int, name ...string) {
	t.Helper()
	key := client.ObjectKeyFromObject(o)
	if len(name) > 0 {
		key.Name = name[0]
	}
	require.NoError(t, c.Get(t.Context(), key, o))
	base := o.DeepCopyObject().(client.Object)
	o.SetAnnotations(map[string]string{"touched": fmt.Sprint(i)})
	require.NoError(t, c.Patch(t.Context(), o, client.MergeFrom(base)))
}
