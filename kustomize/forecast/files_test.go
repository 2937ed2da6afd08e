package forecast_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func TestAFileHasVolumes(t *testing.T) {
	kind, err := workload.KindNamed("StatefulSet")
	require.NoError(t, err)
	objects := []*unstructured.Unstructured{
		scenes.Object(t, db),
		scenes.Object(t, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}"),
	}
	scene, err := forecast.Files(objects, workload.Named{Kind: kind, Name: "db"}, scenes.Now())
	require.NoError(t, err)
	require.Len(t, scene.Volumes, 1)
	assert.Equal(t, "a", scene.Volumes[0].Name)
}
