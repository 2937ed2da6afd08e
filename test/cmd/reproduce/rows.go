package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// row is a problem that a test of this repository holds off.
type row struct {
	// Name is how people call it. File NAME.patch takes the fix out.
	Name string `json:"name"`
	// Problem is the text of the row of the page, without its issues.
	Problem string `json:"problem"`
	// Test is the test as the page names it: FILE:TEST.
	Test string `json:"test"`

	issues []string
}

// readRows returns the rows, with the issues that the page has about their problems.
func readRows(root string) ([]row, error) {
	text, err := os.ReadFile(filepath.Join(root, testdata, "rows.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	var all []row
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	text, err = os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	for i := range all {
		if all[i].issues, err = issuesOf(string(text), all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// issue is a reference to an issue as GitHub reads it.
var issue = regexp.MustCompile(`[\w.-]+/[\w.-]+#\d+`)

// issuesOf returns the issues of the row in the text of the page that has the problem and names the test.
func issuesOf(text string, r row) ([]string, error) {
	for line := range strings.Lines(text) {
		cells := strings.Split(line, " | ")
		problem := strings.TrimRight(issue.ReplaceAllString(strings.TrimPrefix(cells[0], "| "), ""), ":, ")
		if problem == r.Problem && strings.Contains(cells[len(cells)-1], "`"+r.Test+"`") {
			return issue.FindAllString(cells[0], -1), nil
		}
	}
	return nil, fmt.Errorf("row %s: the page has no row %q with test %s", r.Name, r.Problem, r.Test)
}

// choose returns the rows with the names, or all rows if there is no name.
func choose(all []row, names []string) ([]row, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []row
	for _, name := range names {
		i := slices.IndexFunc(all, func(r row) bool { return r.Name == name })
		if i < 0 {
			var known []string
			for _, r := range all {
				known = append(known, r.Name)
			}
			return nil, fmt.Errorf("there is no row %s: use one of %s", name, strings.Join(known, " "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
