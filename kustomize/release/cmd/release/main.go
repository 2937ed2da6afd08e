package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/spf13/pflag"

	"github.com/flotilla-project/flotilla/kustomize/release"
	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o := release.Options{Date: time.Now()}
	flags := pflag.NewFlagSet("release", pflag.ContinueOnError)
	flags.StringVar(&o.Root, "root", "", "folder of go.work; default: found above the working directory")
	flags.StringVar(&o.Registry, "registry", "", "build: HOST[:PORT][/PREFIX] that install files name")
	flags.BoolVar(&o.Push, "push", false, "build: push the images there")
	flags.StringSliceVar(&o.Platforms, "platforms", nil, "build: platforms to build for; default: "+strings.Join(images.DefaultPlatforms(), ","))
	flags.StringSliceVar(&o.Machines, "machines", nil, "build: machines to build the command for; default: "+strings.Join(release.DefaultMachines(), ","))
	only := flags.StringSlice("only", nil, "build, rehearse: modules to build; default: all that are prepared")
	format := flags.StringP("output", "o", "", "plan: json")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Root == "" {
		root, err := images.FindRoot()
		if err != nil {
			return err
		}
		o.Root = root
	}
	switch flags.Arg(0) {
	case "plan":
		return plan(ctx, o, *format, out)
	case "prepare":
		return prepare(ctx, o, out)
	case "build":
		return build(ctx, o, flags.Arg(1), *only, out)
	case "tag":
		return tag(ctx, o, out)
	case "check":
		return check(ctx, o, out)
	case "rehearse":
		return rehearse(ctx, o, flags.Arg(1), *only, out)
	}
	return errors.New("what to do? check, plan, prepare, build FOLDER, tag or rehearse FOLDER")
}

func planned(ctx context.Context, o release.Options) ([]release.Release, error) {
	modules, err := release.Read(ctx, o.Root)
	if err != nil {
		return nil, err
	}
	return release.Plan(modules)
}

func plan(ctx context.Context, o release.Options, format string, out io.Writer) error {
	all, err := planned(ctx, o)
	if err != nil {
		return err
	}
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(out, "nothing has changed since the last releases")
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MODULE\tFROM\tTO\tBECAUSE")
	for _, r := range all {
		from := r.From
		because := fmt.Sprintf("%s, %d notes", r.Kind, len(r.Notes))
		if from == "" {
			from, because = "-", "first release"
		}
		if r.Kind == release.Follow {
			because = "follows " + strings.Join(r.Follows, ", ")
		}
		if r.Warning != "" {
			because += ": " + r.Warning
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Module, from, r.To, because)
	}
	return table.Flush()
}

// check fails if a module has incompatible changes that no note announces.
func check(ctx context.Context, o release.Options, out io.Writer) error {
	found, err := release.Unannounced(ctx, o.Root)
	if err != nil {
		return err
	}
	for _, m := range found {
		fmt.Fprintf(out, "%s: incompatible with %s\n  %s\n", m.Module, m.Version, strings.Join(m.Changes, "\n  "))
	}
	if len(found) > 0 {
		return errors.New("exported names have changed: keep them, or announce each module's change in .changes/breaking-TOPIC.md")
	}
	return nil
}

func prepare(ctx context.Context, o release.Options, out io.Writer) error {
	all, err := planned(ctx, o)
	if err != nil {
		return err
	}
	if err := release.Prepare(o.Root, all, o.Date); err != nil {
		return err
	}
	fmt.Fprintf(out, "prepared %d releases: look at git diff, and commit\n", len(all))
	return nil
}

func prepared(ctx context.Context, o release.Options) ([]release.Release, error) {
	all, err := release.Prepared(ctx, o.Root)
	if err == nil && len(all) == 0 {
		err = errors.New("nothing is prepared: each version of the changelogs has its tag (release prepare)")
	}
	return all, err
}

func build(ctx context.Context, o release.Options, folder string, only []string, out io.Writer) error {
	if folder == "" {
		return errors.New("build needs a folder to write")
	}
	all, err := prepared(ctx, o)
	if err != nil {
		return err
	}
	if len(only) > 0 {
		all = slices.DeleteFunc(all, func(r release.Release) bool { return !slices.Contains(only, r.Module) })
	}
	o.Output = folder
	if o.Revision, err = git(ctx, o, "rev-parse", "HEAD"); err != nil {
		return err
	}
	if err := release.Build(ctx, o, all); err != nil {
		return err
	}
	fmt.Fprintf(out, "built %d releases in %s\n", len(all), folder)
	return nil
}

// rehearse releases a copy of the work tree. Without a registry it serves one while it runs.
func rehearse(ctx context.Context, o release.Options, folder string, only []string, out io.Writer) error {
	if folder == "" {
		return errors.New("rehearse needs a folder to write")
	}
	if o.Registry == "" {
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		defer server.Close()
		o.Registry = strings.TrimPrefix(server.URL, "http://")
	}
	rehearsal := release.Rehearsal{
		Root:     o.Root,
		Output:   folder,
		Registry: o.Registry,
		Only:     only,
		Out:      out,
	}
	if err := rehearsal.Rehearse(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "rehearsed a release in %s\n", folder)
	return nil
}

func tag(ctx context.Context, o release.Options, out io.Writer) error {
	all, err := prepared(ctx, o)
	if err != nil {
		return err
	}
	if changes, err := git(ctx, o, "status", "--porcelain"); err != nil || changes != "" {
		return errors.Join(err, errors.New("a tag names a commit: commit what is prepared first"))
	}
	for _, r := range all {
		if _, err := git(ctx, o, "tag", "-a", "-m", r.Tag(), r.Tag()); err != nil {
			return err
		}
		fmt.Fprintln(out, r.Tag())
	}
	return nil
}

func git(ctx context.Context, o release.Options, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", o.Root}, args...)...)
	command.Stderr = os.Stderr
	said, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(said)), nil
}
