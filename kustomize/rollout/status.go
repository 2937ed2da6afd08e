package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// status returns the subcommand that waits for a rollout.
func (c common) status() *cobra.Command {
	var follow bool
	var timeout time.Duration
	var output cli.Output
	command := c.command("status", "Wait until a rollout is complete", `Wait until a rollout has reached its partition, or all pods.

The exit code is 0 if the rollout is complete, and 3 if it has failed or --timeout has passed. With --watch=false the command
prints the state at once, with exit code 3 for a rollout that is incomplete.`,
		func(ctx context.Context, client *workload.Client, s *workload.Set) error {
			tell := voice{
				out:    c.streams.Out,
				output: output,
				last:   new(""),
			}
			if !follow {
				p := progress.Judge(s)
				return tell.end(p, answer(p))
			}
			if output == "" {
				playing, stop := context.WithCancel(ctx)
				defer stop()
				tell.estimate = newEstimate(playing, client, s, c.clock)
			}
			return waitFor(ctx, client, s, timeout, tell)
		})
	command.Flags().BoolVar(&follow, "watch", true, "wait for the end of the rollout; false prints the state at once")
	command.Flags().DurationVar(&timeout, "timeout", 0, "time limit, such as 5m; 0 means no limit")
	output.AddTo(command.Flags())
	return command
}

// answer is the error that a command ends with: nil when the rollout has arrived.
func answer(p progress.Report) error {
	if p.Phase == progress.Complete {
		return nil
	}
	return cli.NoErrorf("%s/%s is not complete: %s", p.Kind, p.Name, p.Message)
}

// waitFor reports the progress of a rollout until it ends, or time is up.
func waitFor(ctx context.Context, client *workload.Client, s *workload.Set, timeout time.Duration, tell voice) error {
	ctx, cancel := withTimeout(ctx, timeout)
	defer cancel()
	last := progress.Judge(s)
	watched, err := client.Watch(ctx, s, false)
	if ctx.Err() != nil {
		return tell.end(last, ended(ctx, timeout, last))
	}
	if err != nil {
		return err
	}
	for {
		now, err := watched.Set()
		if err != nil {
			return err
		}
		if now == nil || now.UID != s.UID {
			return fmt.Errorf("%s was deleted", s)
		}
		last = progress.Judge(now)
		if last.Phase == progress.Complete || last.Phase == progress.Failed {
			return tell.end(last, answer(last))
		}
		tell.say(last, tell.estimate.of(now, last))
		select {
		case <-watched.Changed():
		case <-ctx.Done():
			return tell.end(last, ended(ctx, timeout, last))
		}
	}
}

func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout > 0 {
		return context.WithTimeout(ctx, timeout)
	}
	return context.WithCancel(ctx)
}

// ended returns why a wait ended before the rollout did.
func ended(ctx context.Context, timeout time.Duration, p progress.Report) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return cli.NoErrorf("%s/%s is not complete after %s: %s", p.Kind, p.Name, timeout, p.Message)
	}
	return ctx.Err()
}

// voice prints the progress of a rollout.
type voice struct {
	out    io.Writer
	output cli.Output
	last   *string
	// estimate knows how long the rollout still takes. Optional.
	estimate *estimate
}

// say prints a message that was not the last one, and more of the moment.
func (v voice) say(p progress.Report, more string) {
	if v.output != "" || *v.last == p.Message {
		return
	}
	*v.last = p.Message
	fmt.Fprintf(v.out, "%s/%s: %s%s\n", p.Kind, p.Name, p.Message, more)
}

// end prints the last state, and returns the error that the command ends with. The text of an error is not printed twice.
func (v voice) end(p progress.Report, err error) error {
	switch {
	case v.output != "":
		if failed := v.output.Print(v.out, p); failed != nil {
			return failed
		}
	case err == nil:
		v.say(p, "")
	}
	return err
}
