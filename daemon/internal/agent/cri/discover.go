package cri

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// sockets returns where runtimes listen below the host's /var/run, the most likely first. Each is there twice: for a
// mount of /var/run itself and for one of the runtime's folder.
func sockets() []string {
	return []string{
		"containerd.sock", "containerd/containerd.sock",
		"crio.sock", "crio/crio.sock",
		"cri-dockerd.sock", "cri-dockerd/cri-dockerd.sock",
	}
}

// candidates returns the paths at which a runtime is looked for: the file that was asked for, or all known ones.
func candidates(root, file string) []string {
	names := sockets()
	if file != "" {
		names = []string{file}
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(root, name)
	}
	return paths
}

// isSocket reports whether there is a socket at a path. A runtime that ends may leave its socket behind.
func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// splitID takes a container ID as pods show it, such as containerd://0a1b, into the runtime's name and the
// runtime's own ID. Without a runtime's name the first result is empty.
func splitID(containerID string) (runtime, id string) {
	if before, after, found := strings.Cut(containerID, "://"); found {
		return before, after
	}
	return "", containerID
}

func joinID(runtime, id string) string { return runtime + "://" + id }
