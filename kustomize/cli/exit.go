package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Code is how the process ends.
type Code int

const (
	// Done means that the requested state is reached.
	Done Code = 0
	// Failed means that an action failed. The error names it.
	Failed Code = 1
	// Misused means that the command line makes no sense; nothing was done.
	Misused Code = 2
	// NotSo means that the question was answered, and the answer is no: the installation is unhealthy, the rollout is not
	// complete, the manifests differ.
	NotSo Code = 3
	// Interrupted means that the user ended the command, or its terminal went away.
	Interrupted Code = 130
)

// ExitError ends the process with a code. An empty message means that the command has printed everything already.
type ExitError struct {
	Code    Code
	Message string
}

// Error returns the message.
func (e *ExitError) Error() string { return e.Message }

// NoErrorf returns the answer no.
func NoErrorf(format string, args ...any) error {
	return &ExitError{Code: NotSo, Message: fmt.Sprintf(format, args...)}
}

// MisuseErrorf returns an error about the command line.
func MisuseErrorf(format string, args ...any) error {
	return &ExitError{Code: Misused, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns how the process ends after an error of a command.
func CodeOf(err error) Code {
	var exit *ExitError
	switch {
	case err == nil:
		return Done
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failed
}

// Arguments turns errors of a check of arguments into misuse.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if err := check(command, args); err != nil {
			return MisuseErrorf("%s; see %s --help", err, command.CommandPath())
		}
		return nil
	}
}

// Run executes the root command, prints its error to its error stream and returns how the process ends.
func Run(ctx context.Context, root *cobra.Command) Code {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return MisuseErrorf("%s; see %s --help", err, command.CommandPath())
	})
	err := interrupted(ctx, root.ExecuteContext(ctx))
	if err != nil && err.Error() != "" {
		fmt.Fprintln(root.ErrOrStderr(), "error:", Explain(err))
	}
	return CodeOf(err)
}

// interrupted returns an error that tells of the interruption of a command if the failure is a result of that.
func interrupted(ctx context.Context, err error) error {
	if err != nil && CodeOf(err) == Failed && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}
