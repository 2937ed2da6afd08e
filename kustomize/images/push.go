package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// tries is how often a blob or a manifest is sent to a registry that fails for a moment.
	tries = 4
	// mostOfAnswer limits the part of an answer that is read.
	mostOfAnswer = 64 << 10
)

// pusher writes images to one registry.
type pusher struct {
	// base is the address of the registry, such as https://registry.example.
	base   *url.URL
	client *http.Client
	// pause is the time before the second try; each further one is twice as long.
	pause time.Duration
}

// push writes an image below a repository: blobs first, because registries refuse manifests without them. Content that the
// registry has is not sent again.
func (p *pusher) push(ctx context.Context, layout fs.FS, repository string, i image) error {
	for _, blob := range i.blobs {
		err := p.again(ctx, func() (bool, error) { return p.pushBlob(ctx, layout, repository, blob) })
		if err != nil {
			return fmt.Errorf("push blob %s: %w", blob.Digest, err)
		}
	}
	for n, m := range i.manifests {
		reference := m.descriptor.Digest.String()
		if n == len(i.manifests)-1 {
			reference = i.tag
		}
		err := p.again(ctx, func() (bool, error) { return p.pushManifest(ctx, repository, reference, m) })
		if err != nil {
			return fmt.Errorf("push manifest %s: %w", m.descriptor.Digest, err)
		}
	}
	return nil
}

// again repeats what fails for a moment.
func (p *pusher) again(ctx context.Context, do func() (momentary bool, err error)) error {
	pause := p.pause
	for n := 1; ; n++ {
		momentary, err := do()
		if err == nil || !momentary || n == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func (p *pusher) pushBlob(ctx context.Context, layout fs.FS, repository string, blob v1.Descriptor) (momentary bool, err error) {
	there, momentary, err := p.has(ctx, p.at(repository, "blobs", blob.Digest.String()))
	if err != nil || there {
		return momentary, err
	}
	begun, momentary, err := p.send(ctx, http.MethodPost, p.at(repository, "blobs", "uploads")+"/", "", nil, 0, http.StatusAccepted)
	if err != nil {
		return momentary, err
	}
	to, err := begun.Location()
	if err != nil {
		return false, fmt.Errorf("begin the upload: %w", err)
	}
	query := to.Query()
	query.Set("digest", blob.Digest.String())
	to.RawQuery = query.Encode()
	open := func() (io.ReadCloser, error) { return layout.Open(blobPath(blob.Digest)) }
	_, momentary, err = p.send(ctx, http.MethodPut, to.String(), "application/octet-stream", open, blob.Size, http.StatusCreated)
	return momentary, err
}

func (p *pusher) pushManifest(ctx context.Context, repository, reference string, m manifest) (momentary bool, err error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.text)), nil }
	answer, momentary, err := p.send(ctx, http.MethodPut, p.at(repository, "manifests", reference), string(m.descriptor.MediaType), open, int64(len(m.text)), http.StatusCreated)
	if err != nil {
		return momentary, err
	}
	if got := answer.Header.Get("Docker-Content-Digest"); got != "" && got != m.descriptor.Digest.String() {
		return false, fmt.Errorf("the registry has stored it with digest %s", got)
	}
	return false, nil
}

// at returns the address of a part of a repository.
func (p *pusher) at(repository string, parts ...string) string {
	return p.base.JoinPath(append([]string{"v2", repository}, parts...)...).String()
}

// has asks whether the registry has content. Registries that do not know the repository yet answer that they have not.
func (p *pusher) has(ctx context.Context, address string) (there, momentary bool, err error) {
	answer, err := p.do(ctx, http.MethodHead, address, "", nil, 0)
	if err != nil {
		return false, ofConnection(err), err
	}
	_ = answer.Body.Close() // an answer to HEAD has no body
	switch answer.StatusCode {
	case http.StatusOK:
		return true, false, nil
	case http.StatusNotFound:
		return false, false, nil
	}
	return false, ofAMoment(answer.StatusCode), refusal(answer, "")
}

// send makes a request and expects a status. The answer's body is closed.
func (p *pusher) send(
	ctx context.Context, method, address, contentType string, open func() (io.ReadCloser, error), size int64, want int,
) (answer *http.Response, momentary bool, err error) {
	answer, err = p.do(ctx, method, address, contentType, open, size)
	if err != nil {
		return nil, ofConnection(err), err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostOfAnswer))
	_ = answer.Body.Close() // it was only read
	if err != nil {
		return nil, ofConnection(err), fmt.Errorf("read the answer to %s %s: %w", method, address, err)
	}
	if answer.StatusCode != want {
		return nil, ofAMoment(answer.StatusCode), refusal(answer, string(text))
	}
	return answer, false, nil
}

func (p *pusher) do(ctx context.Context, method, address, contentType string, open func() (io.ReadCloser, error), size int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if open != nil {
		request.GetBody, request.ContentLength = open, size
		if request.Body, err = open(); err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", contentType)
	}
	return p.client.Do(request)
}

// refusal names a request that a registry did not accept.
func refusal(answer *http.Response, text string) error {
	message := answer.Request.Method + " " + answer.Request.URL.Redacted() + ": " + answer.Status
	if text = strings.TrimSpace(text); text != "" {
		message += ": " + text
	}
	if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
		message += "; check the permission to push, or log in again with your container tool"
	}
	return errors.New(message)
}

// ofConnection reports whether an error is one of a connection, which another try may not meet. A name that does not exist, a
// certificate that is not trusted, a port without a listener and refused credentials stay as they are.
func ofConnection(err error) bool {
	var name *net.DNSError
	if errors.Is(err, context.Canceled) || errors.As(err, &name) && name.IsNotFound || errors.Is(err, syscall.ECONNREFUSED) {
		return false
	}
	var connection *net.OpError
	var slow net.Error
	return errors.As(err, &connection) || errors.As(err, &slow) && slow.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ofAMoment reports whether a registry may answer otherwise a little later.
func ofAMoment(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= http.StatusInternalServerError
}
