package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

const (
	// answerTime is how long a registry may think about a request. It stores a blob before it answers.
	answerTime = 5 * time.Minute
	// firstPause is the time before a request is repeated.
	firstPause = 2 * time.Second
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
			layout := os.DirFS(args[0])
			images, err := readLayout(layout)
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
				err = target.pushAll(command.Context(), streams.Out, layout, images)
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
	command.Flags().BoolVar(&plain, "plain-http", false, "use HTTP without TLS")
	return command
}

func folderAndRegistry(_ *cobra.Command, args []string) error {
	const wanted = 2
	if len(args) != wanted {
		return errors.New("name a folder and a registry, as in ./images registry.example.com/team")
	}
	return nil
}

// target is the registry and the path in it that images are pushed to.
type target struct {
	// text is the target as a user names it.
	text       string
	repository name.Repository
}

// parseTarget reads HOST[:PORT][/PATH]. Errors are misuse.
func parseTarget(text string, plain bool) (target, error) {
	text = strings.TrimRight(text, "/")
	if strings.Contains(text, "//") {
		return target{}, cli.MisuseErrorf("registry %s: omit the scheme, as in registry.example.com/team", text)
	}
	var options []name.Option
	if plain {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(text+"/"+owner, append(options, name.StrictValidation)...)
	if err != nil {
		return target{}, cli.MisuseErrorf("registry %s: %s", text, err)
	}
	return target{text: text, repository: repository}, nil
}

// in returns the repository of an image within the registry.
func (t target) in(i image) string {
	return path.Join(path.Dir(t.repository.RepositoryStr()), i.repository)
}

// describe names an image in the registry, with its digest and platforms.
func (t target) describe(i image) string {
	text := fmt.Sprintf("%s/%s:%s@%s", t.text, i.repository, i.tag, i.digest)
	if len(i.platforms) > 0 {
		text += " (" + strings.Join(i.platforms, ", ") + ")"
	}
	return text
}

func (t target) pushAll(ctx context.Context, out io.Writer, layout fs.FS, images []image) error {
	base := &url.URL{Scheme: t.repository.Scheme(), Host: t.repository.RegistryStr(), Path: "/"}
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.ResponseHeaderTimeout = answerTime
	defer transport.CloseIdleConnections()
	p := &pusher{base: base, pause: firstPause, client: &http.Client{Transport: &authorizer{
		next: transport, base: base, headers: map[string]string{},
		credentials: func(ctx context.Context) (credentials, error) { return userCredentials(ctx, base.Host) },
	}}}
	for _, i := range images {
		err := p.push(ctx, layout, t.in(i), i)
		var dial *net.OpError
		if ctx.Err() == nil && errors.As(err, &dial) {
			// Without the wrapped error: the advice for connections that fail is about the cluster.
			return fmt.Errorf("push %s/%s:%s: registry %s cannot be reached: %v", t.text, i.repository, i.tag, base.Host, err) //nolint:errorlint // see above
		}
		if err != nil {
			return fmt.Errorf("push %s/%s:%s: %w", t.text, i.repository, i.tag, err)
		}
		fmt.Fprintln(out, "pushed", t.describe(i))
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
