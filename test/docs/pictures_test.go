package docs

import (
	"encoding/xml"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/docs/pictures"
)

var shown = regexp.MustCompile(`!\[([^\]]+)\]\(([^()\s]+\.svg)\)`)

func TestPicturesAreOfTheirTexts(t *testing.T) {
	drawn, err := pictures.Draw(root)
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(root, pictures.Folder, "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(text), string(drawn[file]), "%s is not of its text: run make generate", file)
		delete(drawn, file)
	}
	assert.Empty(t, drawn, "texts without a picture: run make generate")
}

// Readers who do not see a picture have its title, its description and, on a page that shows it, a text instead.
func TestPicturesAreShownWithWords(t *testing.T) {
	places := map[string]bool{}
	for name := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		for _, match := range shown.FindAllStringSubmatch(string(text), -1) {
			places[path.Join(path.Dir(name), match[2])] = true
		}
	}
	drawn, err := pictures.Draw(root)
	require.NoError(t, err)
	for file, text := range drawn {
		var svg struct {
			Title       string   `xml:"title"`
			Description string   `xml:"desc"`
			Texts       []string `xml:"text"`
		}
		require.NoError(t, xml.Unmarshal(text, &svg), file)
		assert.Empty(t, breaches(svg.Title+". "+svg.Description+" "+strings.Join(svg.Texts, " ")), file)
		name := path.Join(pictures.Folder, filepath.Base(file))
		assert.True(t, places[name], "no page shows %s with a text in its place", name)
	}
}
