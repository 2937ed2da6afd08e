// Command pictures draws the pictures of docs from the texts beside them.
//
//	pictures [root of the repository]
package main

import (
	"fmt"
	"os"

	"github.com/flotilla-project/flotilla/test/docs/pictures"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	drawn, err := pictures.Draw(root)
	if err != nil {
		return err
	}
	for file, svg := range drawn {
		if err := os.WriteFile(file, svg, 0o644); err != nil {
			return fmt.Errorf("write a picture: %w", err)
		}
	}
	return nil
}
