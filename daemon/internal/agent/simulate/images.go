package simulate

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RemoteImage is an image in the runtime's registry.
type RemoteImage struct {
	// ID is the image's ID once it is pulled, and Digest the repository digest, such as sha256:....
	ID, Digest string
	// Admit decides who may pull; nil means everybody. Anonymous comes as nil.
	Admit func(auth *runtimev1.AuthConfig) bool
}

// AddRemoteImage puts an image into the registry under a full reference.
func (r *Runtime) AddRemoteImage(reference string, remote RemoteImage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.registry[reference] = remote
}

// AddImage puts an image into the runtime as if it had been pulled.
func (r *Runtime) AddImage(id string, tags, digests []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images = append(r.images, &runtimev1.Image{
		Id:          id,
		RepoTags:    tags,
		RepoDigests: digests,
		Size:        1,
	})
}

// ImageFsInfo implements the call.
func (r *Runtime) ImageFsInfo(context.Context, *runtimev1.ImageFsInfoRequest) (*runtimev1.ImageFsInfoResponse, error) {
	return &runtimev1.ImageFsInfoResponse{}, nil
}

// ImageStatus implements the call.
func (r *Runtime) ImageStatus(_ context.Context, request *runtimev1.ImageStatusRequest) (*runtimev1.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.images, func(image *runtimev1.Image) bool {
		return slices.Contains(image.RepoTags, request.GetImage().GetImage()) || slices.Contains(image.RepoDigests, request.GetImage().GetImage())
	})
	if i < 0 {
		return &runtimev1.ImageStatusResponse{}, nil
	}
	return &runtimev1.ImageStatusResponse{Image: r.images[i]}, nil
}

// ListImages implements the call.
func (r *Runtime) ListImages(context.Context, *runtimev1.ListImagesRequest) (*runtimev1.ListImagesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &runtimev1.ListImagesResponse{Images: slices.Clone(r.images)}, nil
}

// PullImage implements the call: the reference must be in the registry exactly.
func (r *Runtime) PullImage(_ context.Context, request *runtimev1.PullImageRequest) (*runtimev1.PullImageResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reference := request.GetImage().GetImage()
	remote, found := r.registry[reference]
	if !found {
		return nil, status.Errorf(codes.NotFound, "%s: not found", reference)
	}
	if remote.Admit != nil && !remote.Admit(request.GetAuth()) {
		return nil, status.Errorf(codes.Unknown, "%s: authorization failed", reference)
	}
	image := &runtimev1.Image{Id: remote.ID, Size: 1}
	if remote.Digest != "" {
		image.RepoDigests = []string{repository(reference) + "@" + remote.Digest}
	}
	if reference != repository(reference)+"@"+remote.Digest {
		image.RepoTags = []string{reference}
	}
	r.images = append(r.images, image)
	return &runtimev1.PullImageResponse{ImageRef: remote.ID}, nil
}

// repository cuts tag and digest off a full reference.
func repository(reference string) string {
	for i := len(reference) - 1; i >= 0; i-- {
		switch reference[i] {
		case '@':
			return reference[:i]
		case ':':
			if at := slices.Index([]byte(reference), '@'); at >= 0 {
				return reference[:at]
			}
			return reference[:i]
		case '/':
			return reference
		}
	}
	return reference
}
