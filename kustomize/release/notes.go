package release

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	fragments  = ".changes"
	changelog  = "CHANGELOG.md"
	unreleased = "## Unreleased"
)

// notes returns the notes in the module's folder: breaking changes first, then features, then fixes.
func notes(folder string) ([]Note, error) {
	all, err := readFragments(filepath.Join(folder, fragments))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(folder, changelog))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the changelog: %w", err)
	}
	_, waiting, _ := split(string(text))
	for _, item := range items(waiting) {
		all = append(all, Note{Kind: Feature, Text: item})
	}
	slices.SortStableFunc(all, func(a, b Note) int { return cmp.Compare(b.Kind, a.Kind) })
	return all, nil
}

func readFragments(folder string) ([]Note, error) {
	files, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the notes: %w", err)
	}
	var all []Note
	for _, file := range files {
		word, _, _ := strings.Cut(file.Name(), "-")
		kind := Kind(slices.Index(words(), word))
		if kind < Fix || filepath.Ext(file.Name()) != ".md" {
			return nil, fmt.Errorf("read note %s: names are breaking-TOPIC.md, feature-TOPIC.md or fix-TOPIC.md", filepath.Join(folder, file.Name()))
		}
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("read note %s: %w", file.Name(), err)
		}
		all = append(all, Note{Kind: kind, Text: strings.Join(strings.Fields(string(text)), " ")})
	}
	return all, nil
}

// split returns the text of a changelog before its section Unreleased, that section, and the sections of releases.
func split(text string) (head, waiting, released string) {
	head, rest, found := strings.Cut(text, unreleased+"\n")
	if !found {
		return text, "", ""
	}
	if i := strings.Index(rest, "\n## "); i >= 0 {
		return head, rest[:i+1], rest[i+1:]
	}
	return head, rest, ""
}

// items returns the items of a Markdown list, each as one line.
func items(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if item, begins := strings.CutPrefix(line, "- "); begins {
			all = append(all, strings.TrimSpace(item))
		} else if line = strings.TrimSpace(line); line != "" && len(all) > 0 {
			all[len(all)-1] += " " + line
		}
	}
	return all
}

// Section returns the release's section of a changelog.
func (r Release) Section(date time.Time) string {
	var text strings.Builder
	fmt.Fprintf(&text, "## %s (%s)\n\n", r.To, date.Format(time.DateOnly))
	for _, note := range r.Notes {
		prefix := ""
		if note.Kind == Breaking {
			prefix = breakingPrefix
		}
		fmt.Fprintf(&text, "- %s%s\n", prefix, note.Text)
	}
	if len(r.Follows) > 0 {
		fmt.Fprintf(&text, "- Built with the new versions of %s.\n", strings.Join(r.Follows, ", "))
	}
	return text.String()
}

// fold writes the release's section into the changelog of its module in the work tree, and removes the notes that it is
// made of.
func (r Release) fold(root string, date time.Time) error {
	folder := filepath.Join(root, r.Module)
	file := filepath.Join(folder, changelog)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte("# Changelog\n\n" + unreleased + "\n")
		err = nil
	}
	if err != nil {
		return fmt.Errorf("read the changelog: %w", err)
	}
	head, _, released := split(string(text))
	folded := head + unreleased + "\n\n" + r.Section(date)
	if released != "" {
		folded += "\n" + released
	}
	if err := os.WriteFile(file, []byte(folded), 0o644); err != nil { //nolint:gosec // readable as the rest of the work tree
		return fmt.Errorf("write the changelog: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(folder, fragments)); err != nil {
		return fmt.Errorf("remove the notes: %w", err)
	}
	return nil
}
