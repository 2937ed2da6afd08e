// Command manager is the StatefulSet operator.
package main

import (
	"os"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/statefulset/setup"
)

func main() { os.Exit(manager.Main(setup.Operator())) }
