package charts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/charts"
)

func TestAnArchiveHasTheFilesOfItsChartAndTheSameBytesEachTime(t *testing.T) {
	features, err := catalog.Select("budget")
	require.NoError(t, err)
	var archives [2][]byte
	var chart charts.Chart
	for i := range archives {
		chart, _, err = charts.Of(features[0], "registry.example.com/team")
		require.NoError(t, err)
		archives[i], err = chart.Archive()
		require.NoError(t, err)
	}
	assert.Equal(t, archives[0], archives[1])

	zipped, err := gzip.NewReader(bytes.NewReader(archives[0]))
	require.NoError(t, err)
	tape := tar.NewReader(zipped)
	for _, file := range chart.Files {
		header, err := tape.Next()
		require.NoError(t, err)
		assert.Equal(t, "budget/"+file.Name, header.Name)
		content, err := io.ReadAll(tape)
		require.NoError(t, err)
		assert.Equal(t, file.Content, content)
	}
	_, err = tape.Next()
	assert.Equal(t, io.EOF, err)
}

func TestAnImageHasTheArchiveByTheMediaTypesOfHelm(t *testing.T) {
	chart := charts.Chart{
		Name: "web", Version: "1.2.3", Metadata: charts.Metadata{Name: "web", Version: "1.2.3"},
		Files: []charts.File{{Name: "Chart.yaml", Content: []byte("name: web\n")}},
	}
	image, err := chart.Image()
	require.NoError(t, err)
	manifest, err := image.Manifest()
	require.NoError(t, err)
	assert.Equal(t, "application/vnd.cncf.helm.config.v1+json", string(manifest.Config.MediaType))
	require.Len(t, manifest.Layers, 1)
	assert.Equal(t, "application/vnd.cncf.helm.chart.content.v1.tar+gzip", string(manifest.Layers[0].MediaType))

	layers, err := image.Layers()
	require.NoError(t, err)
	content, err := layers[0].Compressed()
	require.NoError(t, err)
	got, err := io.ReadAll(content)
	require.NoError(t, err)
	want, err := chart.Archive()
	require.NoError(t, err)
	assert.Equal(t, want, got)
}
