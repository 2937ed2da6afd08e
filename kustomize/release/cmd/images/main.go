package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o images.Options
	flags := pflag.NewFlagSet("images", pflag.ContinueOnError)
	flags.StringVar(&o.Registry, "registry", "", "HOST[:PORT][/PREFIX] to push to")
	flags.BoolVar(&o.Insecure, "insecure", false, "ask the registry by plain HTTP")
	flags.StringVar(&o.Output, "output", "", "folder of an OCI layout to add the images to")
	flags.StringSliceVar(&o.Platforms, "platforms", nil, "platforms to build for; default: "+
		strings.Join(images.DefaultPlatforms(), ",")+"; for the demo application: the platform of this machine")
	flags.StringSliceVar(&o.Only, "only", nil, "modules to build; default: all that ship a manager")
	flags.StringVar(&o.Version, "version", "", "version of the images; default: dev")
	flags.StringVar(&o.Tag, "tag", "", "tag of the images; default: the version, and without one the tag in the manifests")
	flags.StringVar(&o.Revision, "revision", "", "commit of the sources; default: HEAD of the work tree")
	apps := flags.StringSlice("apps", nil, "versions of the demo application to build in place of managers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Revision == "" {
		o.Revision = revision(ctx)
	}
	built, err := build(ctx, o, *apps)
	for _, image := range built {
		fmt.Fprintf(out, "%s@%s\n", image.Reference, image.Digest)
	}
	return err
}

func build(ctx context.Context, o images.Options, apps []string) ([]images.Image, error) {
	if len(apps) > 0 {
		return images.AppsTo(ctx, o, apps...)
	}
	return images.Managers(ctx, o)
}

// revision returns the commit of the work tree, or an empty string without a repository.
func revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
