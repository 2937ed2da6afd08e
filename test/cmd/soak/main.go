// Command soak plays random worlds of all plans on all cores for a while and lists those that fail.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	s := &soak{out: out}
	flags := pflag.NewFlagSet("soak", pflag.ContinueOnError)
	flags.DurationVar(&s.duration, "duration", time.Hour, "how long to play")
	flags.Uint64Var(&s.from, "from", 0, "the first seed of each test; default: one that chance picks")
	flags.IntVar(&s.processes, "procs", runtime.NumCPU(), "how many worlds to play at a time")
	plans := flags.String("plans", ".", "which tests, by a regular expression for package.Test")
	modules := flags.StringSlice("modules", nil, "folders of the modules; default: those of the workspace")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if s.from == 0 {
		s.from = (1 + rand.Uint64N(1_000_000)) * 1_000_000 //nolint:gosec // seeds need no secrecy
	}
	chosen, err := regexp.Compile(*plans)
	if err != nil {
		return fmt.Errorf("--plans: %w", err)
	}
	if len(*modules) == 0 {
		if *modules, err = workspace(ctx); err != nil {
			return err
		}
	}
	binaries, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(binaries)
	for _, module := range *modules {
		suites, err := findSuites(ctx, module)
		if err != nil {
			return err
		}
		for _, suite := range suites {
			if err := s.add(ctx, suite, chosen, binaries); err != nil {
				return err
			}
		}
	}
	if len(s.walks) == 0 {
		return fmt.Errorf("no test plays random worlds whose name matches %q", *plans)
	}
	return s.play(ctx)
}
