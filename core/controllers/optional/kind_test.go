package optional_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

// served are the resources of each group and version; the error stands for one that does not answer.
type served struct {
	resources map[string][]string
	err       error
}

func (s served) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	names, ok := s.resources[version]
	switch {
	case !ok && s.err != nil:
		return nil, s.err
	case !ok:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	list := &metav1.APIResourceList{}
	for _, name := range names {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

func TestTheBestServedVersionCounts(t *testing.T) {
	silent := errors.New("no answer")
	k := optional.Kind{GroupKind: schema.GroupKind{Group: "g.io", Kind: "Widget"}, Resource: "widgets", Versions: []string{"v2", "v1"}}
	for name, test := range map[string]struct {
		served served
		want   string
		err    error
	}{
		"nothing":               {served: served{}},
		"another kind":          {served: served{resources: map[string][]string{"g.io/v2": {"gadgets", "widgets/status"}}}},
		"both":                  {served: served{resources: map[string][]string{"g.io/v2": {"widgets"}, "g.io/v1": {"widgets"}}}, want: "v2"},
		"the older one":         {served: served{resources: map[string][]string{"g.io/v2": {"gadgets"}, "g.io/v1": {"widgets"}}}, want: "v1"},
		"nobody says":           {served: served{err: silent}, err: silent},
		"nobody says of better": {served: served{resources: map[string][]string{"g.io/v1": {"widgets"}}, err: silent}, err: silent},
	} {
		t.Run(name, func(t *testing.T) {
			version, err := k.Served(test.served)
			require.ErrorIs(t, err, test.err)
			assert.Equal(t, test.want, version)
		})
	}
	assert.Equal(t, "g.io/v1, Kind=Widget", k.Metadata("v1").GroupVersionKind().String())
}
