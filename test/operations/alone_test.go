package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/story"
)

// Each feature works on a cluster without the kinds of all others.
func TestEachFeatureWorksAlone(t *testing.T) {
	need(t)
	undefine(t)
	for _, feature := range all(t) {
		t.Run(feature, func(t *testing.T) {
			t.Cleanup(func() { undefine(t) })
			f := install(t, "", feature)
			own := map[string]bool{}
			for _, o := range f[feature].Objects {
				own[o.GetName()] = true
			}
			defined := definitions(t)
			assert.NotEmpty(t, defined)
			for _, o := range defined {
				assert.True(t, own[o.GetName()], "%s is there", o.GetName())
			}
			storyOf(t, feature)(t)
		})
	}
}

// undefine removes the definitions of all our kinds.
func undefine(t *testing.T) {
	t.Helper()
	story.Eventually(t, "the end of all kinds", func(ctx context.Context) error {
		var left error
		for _, o := range definitions(t) {
			left = errors.Join(left, fmt.Errorf("%s is there", o.GetName()), client.IgnoreNotFound(world.Client.Delete(ctx, &o)))
		}
		return left
	})
}

// definitions returns all our CustomResourceDefinitions that the cluster has.
func definitions(t *testing.T) (ours []unstructured.Unstructured) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	require.NoError(t, world.Client.List(context.WithoutCancel(t.Context()), list))
	for _, o := range list.Items {
		if strings.HasSuffix(o.GetName(), ".kruise.io") {
			ours = append(ours, o)
		}
	}
	return ours
}
