package manager

import (
	"errors"
	"fmt"
	"os"

	"github.com/flotilla-project/flotilla/core/operator/process"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

// Main runs an operator as a process, with its arguments, environment and signals. It returns the exit code: 0 after a
// signal or for --help, 2 for bad arguments, 1 for everything else.
func Main(operator Operator) int {
	parsed, err := parse(operator, os.Args[1:], os.Getenv)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", operator.name(), err)
		return 2
	}
	log := parsed.log
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	for _, note := range parsed.notes {
		log.Info(note)
	}
	process.LimitMemory(log)
	config, err := ctrlconfig.GetConfig()
	if err == nil {
		err = Run(signals.SetupSignalHandler(), operator, parsed.Options, config, log)
	}
	if err != nil {
		log.Error(err, "Operator ends", "feature", operator.Feature)
		return 1
	}
	return 0
}
