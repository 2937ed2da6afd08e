package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// answerTime is how long a registry may think about a request. It stores a blob before it answers.
const answerTime = 5 * time.Minute

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

// reference returns the name of an image in the registry.
func (t target) reference(i image) name.Tag {
	return t.repository.Registry.Repo(path.Dir(t.repository.RepositoryStr()), i.repository).Tag(i.tag)
}

// describe names an image in the registry, with its digest and platforms.
func (t target) describe(i image) string {
	text := fmt.Sprintf("%s/%s:%s@%s", t.text, i.repository, i.tag, i.digest)
	if len(i.platforms) > 0 {
		text += " (" + strings.Join(i.platforms, ", ") + ")"
	}
	return text
}

func (t target) pushAll(ctx context.Context, out io.Writer, images []image) error {
	connections, _ := remote.DefaultTransport.(*http.Transport)
	connections = connections.Clone()
	connections.ResponseHeaderTimeout = answerTime
	defer connections.CloseIdleConnections()
	pusher, err := remote.NewPusher(
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(connections), remote.WithUserAgent("flotilla"),
	)
	if err != nil {
		return err
	}
	for _, i := range images {
		if err := pusher.Push(ctx, t.reference(i), i.content); err != nil {
			return fmt.Errorf("push %s/%s:%s: %w", t.text, i.repository, i.tag, t.explain(ctx, err))
		}
		fmt.Fprintln(out, "pushed", t.describe(i))
	}
	return nil
}

// explain names the registry in errors that a user can mend.
func (t target) explain(ctx context.Context, err error) error {
	host := t.repository.RegistryStr()
	var refused *transport.Error
	var dial *net.OpError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden):
		return fmt.Errorf("registry %s refuses access: check the permission to push, or log in with your container tool, as in docker login %[1]s: %w", host, err)
	case errors.As(err, &dial):
		// Without the wrapped error: the advice for connections that fail is about the cluster.
		return fmt.Errorf("registry %s cannot be reached: %v", host, err) //nolint:errorlint // see above
	}
	return err
}
