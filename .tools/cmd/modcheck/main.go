// Command modcheck verifies what must hold between the modules of the repository.
//
// It reads go.work and the go.mod files that it names, prints every fault and exits with 1 when there is
// one. It changes nothing.
//
//	modcheck [folder of go.work]
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	workspace, err := Load(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "modcheck:", err)
		os.Exit(1)
	}
	faults := workspace.Faults()
	for _, fault := range faults {
		fmt.Println(fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}
