package v1beta1

// What one NodeImage may hold. It is stored as a whole with each change, for each node, and several namespaces write into
// it: none of them may take the room of all others.
const (
	// MaxImagesPerNode is the largest number of entries in spec.images of a NodeImage.
	MaxImagesPerNode = 256
	// MaxTagsPerImage is the largest number of tags of one image.
	MaxTagsPerImage = 64
	// MaxSecretsPerImage is the largest number of pull secrets of one image.
	MaxSecretsPerImage = 64
	// MaxSandboxBytes is the largest size of the labels and annotations of a sandboxConfig together.
	MaxSandboxBytes = 4 << 10
	// MaxNodeImageBytes is the largest size of spec, as JSON.
	MaxNodeImageBytes = 256 << 10
)

// MaxRequestsPerPod is the largest number of ContainerRecreateRequests for one pod that are not completed. The node agent
// works on one at a time.
const MaxRequestsPerPod = 16

// SandboxBytes is the size of labels and annotations together.
func SandboxBytes(maps ...map[string]string) int {
	size := 0
	for _, m := range maps {
		for key, value := range m {
			size += len(key) + len(value)
		}
	}
	return size
}
