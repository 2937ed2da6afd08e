// Command flotilla installs, watches and removes the operators. Called kubectl-flotilla it is a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

func main() {
	// A terminal that goes away, such as after a lost connection, interrupts as Ctrl-C does.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := newRoot(os.Args[0], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	code := cli.Run(ctx, root)
	stop()
	os.Exit(int(code))
}
