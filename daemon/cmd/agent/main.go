// Command agent is the process on each node that pulls images, restarts containers and reports the images and the
// environment with which containers were started.
package main

import (
	"context"
	"math/rand/v2"
	"os"

	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/operator/process"

	"github.com/flotilla-project/flotilla/daemon/internal/agent"
)

func main() { os.Exit(process.Main(agent.Name, read)) }

func read(arguments []string, getenv func(string) string) (process.Process, error) {
	options, err := agent.ReadOptions(arguments, getenv)
	options.Environ = os.Environ()
	options.Random = rand.Float64
	run := func(ctx context.Context, config *rest.Config) error { return agent.Run(ctx, options, config) }
	return process.Process{Log: options.Log, Notes: options.Notes, Run: run}, err
}
