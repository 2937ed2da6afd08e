package manager

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/operator/process"
)

// Main runs an operator as a process, with its arguments, environment and signals. It returns the exit code: 0 after a
// signal or for --help, 2 for bad arguments, 1 for everything else.
func Main(operator Operator) int {
	return process.Main(operator.name(), func(arguments []string, getenv func(string) string) (process.Process, error) {
		parsed, err := parse(operator, arguments, getenv)
		run := func(ctx context.Context, config *rest.Config) error {
			return Run(ctx, operator, parsed.Options, config, parsed.log)
		}
		return process.Process{Log: parsed.log, Notes: parsed.notes, Run: run}, err
	})
}
