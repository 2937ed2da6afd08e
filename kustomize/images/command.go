package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// NewCommand returns "flotilla images".
func NewCommand(_ genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "images",
		Short: "Push the images of a release to a registry of yours",
		Args:  cli.Arguments(cobra.NoArgs),
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newPushCommand(streams))
	return command
}

func newPushCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var dryRun, plain bool
	command := &cobra.Command{
		Use:   "push DIR REGISTRY",
		Short: "Push the images in a folder to a registry",
		Long: `Push all images in a folder to a registry that the nodes can reach, as REGISTRY/flotilla/NAME:TAG. The folder is an OCI
layout, such as folder images of a release. Images for several platforms keep all of them, and each image keeps its digest.
Content that the registry has is not sent again. The command uses the credentials of your container tools (docker login, podman
login), and needs no cluster. At its end it prints the command that installs the operators with these images.`,
		Example: `  flotilla images push ./images registry.example.com/team --dry-run
  flotilla images push ./images registry.example.com/team`,
		Args: cli.Arguments(folderAndRegistry),
		RunE: func(command *cobra.Command, args []string) error {
			target, err := parseTarget(args[1], plain)
			if err != nil {
				return err
			}
			images, err := readLayout(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w; %s must be a complete OCI layout, such as folder images of a release", err, args[0])
			}
			if err != nil {
				return err
			}
			features, err := catalog.Features()
			if err != nil {
				return err
			}
			if !dryRun {
				err = target.pushAll(command.Context(), streams.Out, images)
			} else {
				for _, i := range images {
					fmt.Fprintln(streams.Out, "would push", target.describe(i))
				}
			}
			if err != nil {
				return err
			}
			tellInstall(streams.Out, target.text, features, images)
			return nil
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "list the images without pushing them")
	command.Flags().BoolVar(&plain, "plain-http", false, "use HTTP without TLS if the registry does not answer HTTPS")
	return command
}

func folderAndRegistry(_ *cobra.Command, args []string) error {
	const wanted = 2
	if len(args) != wanted {
		return errors.New("name a folder and a registry, as in ./images registry.example.com/team")
	}
	return nil
}

// tellInstall prints the command that installs the features with images among these, and the features that lack some of theirs.
func tellInstall(out io.Writer, registry string, features []catalog.Feature, images []image) {
	var names, versions []string
	for _, feature := range features {
		tag, missing := find(feature, images)
		switch {
		case len(missing) == len(feature.Images):
		case len(missing) > 0:
			fmt.Fprintf(out, "%s cannot be installed from there: the folder has no %s:%s\n", feature.Name, strings.Join(missing, ", "), tag)
		default:
			names = append(names, feature.Name)
			if tag != feature.Version {
				versions = append(versions, feature.Name+"="+tag)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(out, "To install: flotilla install %s --registry %s", strings.Join(names, " "), registry)
	for _, version := range versions {
		fmt.Fprint(out, " --version ", version)
	}
	fmt.Fprintln(out)
}

// find returns the tag under which a feature would be installed, and its images that are not there with this tag: the version of
// the manifests if its manager is there with it, or else the last tag of its manager.
func find(feature catalog.Feature, images []image) (tag string, missing []string) {
	tag = feature.Version
	manager := owner + "/" + feature.Name + "-manager"
	has := func(repository, tag string) bool {
		return slices.ContainsFunc(images, func(i image) bool { return i.repository == repository && i.tag == tag })
	}
	if !has(manager, tag) {
		for _, i := range images {
			if i.repository == manager {
				tag = i.tag
			}
		}
	}
	for _, repository := range feature.Images {
		if !has(repository, tag) {
			missing = append(missing, repository)
		}
	}
	return tag, missing
}
