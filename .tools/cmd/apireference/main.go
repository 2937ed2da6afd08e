// Command apireference writes the API reference, a page for each feature, from the Go types of its newest version.
//
//	apireference [folder of go.work]
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// newest is the version that pages are of; the older one differs as the page of the kind says.
const newest = "v1beta1"

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "apireference:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	shared, err := load(filepath.Join(root, "core", "api", "workload"))
	if err != nil {
		return err
	}
	folders, err := filepath.Glob(filepath.Join(root, "*", "api", newest))
	if err != nil {
		return fmt.Errorf("look for API types: %w", err)
	}
	for _, folder := range folders {
		types, err := load(folder)
		if err != nil {
			return err
		}
		feature := filepath.Base(filepath.Dir(filepath.Dir(folder)))
		file := filepath.Join(root, "docs", "api", feature+".md")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make the folder of %s: %w", file, err)
		}
		if err := os.WriteFile(file, []byte(page(feature, types, shared)), 0o644); err != nil {
			return fmt.Errorf("write the reference of %s: %w", feature, err)
		}
	}
	return nil
}
