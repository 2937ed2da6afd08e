package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

var (
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile("(?m)^#+ +(.*?) *$")
	code    = regexp.MustCompile("(?s)```.*?```")
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// page is a Markdown file.
type page struct {
	links   []string
	anchors map[string]bool
}

// pages returns those of the repository, by path.
func pages(t *testing.T) map[string]page {
	t.Helper()
	found := map[string]page{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		if entry.IsDir() && (name == ".git" || name == "bin" || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		prose := code.ReplaceAllString(string(text), "")
		p := page{anchors: map[string]bool{}}
		for _, match := range link.FindAllStringSubmatch(prose, -1) {
			p.links = append(p.links, match[1])
		}
		for _, match := range heading.FindAllStringSubmatch(prose, -1) {
			p.anchors[anchor(match[1])] = true
		}
		found[name] = p
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

// anchor returns the fragment of links to a heading, as code hosts make it.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(unnamed.ReplaceAllString(heading, "")), " ", "-")
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for name, p := range all {
		for _, target := range p.links {
			file, fragment, _ := strings.Cut(target, "#")
			if strings.Contains(file, ":") {
				continue // another site
			}
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
				assert.True(t, exists(filepath.Join(root, filepath.FromSlash(to))), "%s links to %s", name, target)
			}
			if linked, ok := all[to]; ok && fragment != "" {
				assert.True(t, linked.anchors[fragment], "%s links to %s, which has no such heading", name, target)
			}
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// far is how many links a reader follows at most from the README of the repository to the page with an answer.
const far = 2

// Who looks for an answer gives up after a few links. Decisions are for developers.
func TestAnswersAreNear(t *testing.T) {
	all := pages(t)
	const start = "README.md"
	clicks, waiting := map[string]int{start: 0}, []string{start}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		for _, target := range all[name].links {
			file, _, _ := strings.Cut(target, "#")
			to := path.Join(path.Dir(name), file)
			if _, known := clicks[to]; known || file == "" || len(all[to].links)+len(all[to].anchors) == 0 {
				continue
			}
			clicks[to] = clicks[name] + 1
			waiting = append(waiting, to)
		}
	}
	for name := range all {
		folder := path.Dir(name)
		if !strings.HasPrefix(folder, "docs/") || folder == "docs/decisions" {
			continue
		}
		n, reached := clicks[name]
		assert.True(t, reached && n <= far, "%s is %d links away from %s", name, n, start)
	}
}

func TestEveryPageIsReachedFromTheIndex(t *testing.T) {
	all := pages(t)
	const index = "docs/README.md"
	require.Contains(t, all, index)
	require.Contains(t, all["README.md"].links, index, "the first page leads to the index")
	reached, waiting := map[string]bool{index: true}, []string{index}
	for len(waiting) > 0 {
		name := waiting[0]
		waiting = waiting[1:]
		for _, target := range all[name].links {
			file, _, _ := strings.Cut(target, "#")
			to := path.Join(path.Dir(name), file)
			if _, ok := all[to]; ok && strings.HasPrefix(to, "docs/") && !reached[to] {
				reached[to] = true
				waiting = append(waiting, to)
			}
		}
	}
	for name := range all {
		assert.True(t, !strings.HasPrefix(name, "docs/") || reached[name], "no link leads from %s to %s", index, name)
	}
}
