package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// release is the version that a released binary was built with.
var release string //nolint:gochecknoglobals // the linker sets it

// version prints the version of this build.
func version(_ genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command",
		Args:  cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if output == "" {
				fmt.Fprintln(streams.Out, buildVersion())
				return nil
			}
			return output.Print(streams.Out, map[string]string{"version": buildVersion()})
		},
	}
	output.AddTo(command.Flags())
	return command
}

// buildVersion returns the version of the module, or that it was built from a checkout.
func buildVersion() string {
	if release != "" {
		return release
	}
	build, ok := debug.ReadBuildInfo()
	if !ok || build.Main.Version == "" {
		return "(devel)"
	}
	return build.Main.Version
}
