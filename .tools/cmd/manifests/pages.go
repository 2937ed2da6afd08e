package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// part is a part of a page that is generated: what stands between two comments, the first of which names a template of
// kustomize/templates/pages.
var part = regexp.MustCompile(`(?s)(<!-- make generate: (\w+) -->)(.*?)(<!-- end of \w+ -->)`)

// FillPage returns the page with its generated parts.
func FillPage(templates fs.FS, page string, features []Feature) (string, error) {
	var failed error
	filled := part.ReplaceAllStringFunc(page, func(found string) string {
		match := part.FindStringSubmatch(found)
		text, err := fill(templates, "pages/"+match[2]+".md.tmpl", features)
		failed = errors.Join(failed, err)
		if !strings.HasPrefix(match[3], "\n") {
			text = strings.TrimSpace(text) // within a line
		}
		return match[1] + text + match[4]
	})
	return filled, failed
}

// writePages writes the generated parts of the README and of the pages of docs.
func writePages(root string, templates fs.FS, features []Feature) error {
	pages := []string{filepath.Join(root, "README.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look for pages: %w", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return fmt.Errorf("read a page: %w", err)
		}
		filled, err := FillPage(templates, string(text), features)
		if err != nil {
			return fmt.Errorf("generate a part of %s: %w", page, err)
		}
		if filled == string(text) {
			continue
		}
		if err := os.WriteFile(page, []byte(filled), 0o644); err != nil {
			return fmt.Errorf("write a page: %w", err)
		}
	}
	return nil
}
