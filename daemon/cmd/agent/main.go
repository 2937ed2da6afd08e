// Command agent is the process on each node that pulls images, restarts containers and reports what containers
// were started with.
package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/flotilla-project/flotilla/core/operator/process"
	"github.com/flotilla-project/flotilla/daemon/internal/agent"
)

func main() { os.Exit(run()) }

// run returns the exit code: 0 after a signal or for --help, 2 for bad settings, 1 for everything else.
func run() int {
	options, err := agent.ReadOptions(os.Args[1:], os.Getenv)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "daemon-agent: %v\n", err)
		return 2
	}
	options.Environ, options.Random = os.Environ(), rand.Float64
	ctrllog.SetLogger(options.Log)
	klog.SetLogger(options.Log)
	for _, note := range options.Notes {
		options.Log.Info(note)
	}
	process.LimitMemory(options.Log)
	config, err := ctrlconfig.GetConfig()
	if err == nil {
		err = agent.Run(signals.SetupSignalHandler(), options, config)
	}
	if err != nil {
		options.Log.Error(err, "Agent ends")
		return 1
	}
	return 0
}
