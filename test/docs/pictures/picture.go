// Package pictures draws the pictures of docs from the texts beside them.
package pictures

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Folder has the texts and the pictures, in the repository.
const Folder = "docs/pictures"

// picture is a text: its title, the same in words for those who do not see it, and one of the kinds of pictures.
type picture struct {
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Sequence    *sequence `json:"sequence"`
	Parts       *parts    `json:"parts"`
	Rollout     *rollout  `json:"rollout"`
	Bars        *bars     `json:"bars"`
}

// Draw returns the picture of each text below the root of the repository, by its file.
func Draw(root string) (map[string][]byte, error) {
	texts, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(Folder), "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("look for texts of pictures: %w", err)
	}
	drawn := make(map[string][]byte, len(texts))
	for _, file := range texts {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the text of a picture: %w", err)
		}
		svg, err := draw(text)
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", filepath.Base(file), err)
		}
		drawn[strings.TrimSuffix(file, ".yaml")+".svg"] = svg
	}
	return drawn, nil
}

func draw(text []byte) ([]byte, error) {
	var p picture
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if p.Title == "" || p.Description == "" {
		return nil, errors.New("title and description are required")
	}
	c := &canvas{}
	height := 0
	switch {
	case p.Sequence != nil:
		height = p.Sequence.draw(c)
	case p.Parts != nil:
		height = p.Parts.draw(c)
	case p.Rollout != nil:
		height = p.Rollout.draw(c)
	case p.Bars != nil:
		height = p.Bars.draw(c)
	default:
		return nil, errors.New("one of sequence, parts, rollout and bars is required")
	}
	return c.picture(p.Title, p.Description, height)
}
