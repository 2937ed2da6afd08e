package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
)

// Process is a process that has read its settings.
type Process struct {
	Log logr.Logger
	// Notes are logged at the start: they are remarks about the settings.
	Notes []string
	// Run runs the process until ctx ends or an error occurs.
	Run func(context.Context, *rest.Config) error
}

// Read makes a process from its arguments and its environment. The error is pflag.ErrHelp if help was asked for and
// printed.
type Read func(arguments []string, getenv func(string) string) (Process, error)

// Main runs a process until a signal asks it to end. It returns the exit code: 0 after a signal or for --help, 2 for
// bad settings, 1 for everything else. The name is the name of the process in messages about its settings.
func Main(name string, read Read) int {
	return start(name, read, os.Args[1:], os.Stderr, func(p Process) error {
		limitMemory(p.Log, memlimit.FromCgroup)
		config, err := ctrlconfig.GetConfig()
		if err != nil {
			return err
		}
		return p.Run(signals.SetupSignalHandler(), config)
	})
}

func start(name string, read Read, arguments []string, stderr io.Writer, run func(Process) error) int {
	p, err := read(arguments, os.Getenv)
	if errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return 2
	}
	ctrllog.SetLogger(p.Log)
	klog.SetLogger(p.Log)
	for _, note := range p.Notes {
		p.Log.Info(note)
	}
	if err := run(p); err != nil {
		p.Log.Error(err, "Process ends", "process", name)
		return 1
	}
	return 0
}
