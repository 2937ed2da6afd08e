package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is the user and group that images run as.
const nonroot = 65532

// file is an entry of a layer: a folder if its path ends in a slash.
type file struct {
	path string // absolute
	mode int64
	data []byte
}

// baseFiles returns the files that every image has in addition to its binary.
func baseFiles() []file {
	return []file{
		{path: "/etc/passwd", mode: 0o644, data: fmt.Appendf(nil,
			"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/tmp:/sbin/nologin\n", nonroot, nonroot)},
		{path: "/etc/group", mode: 0o644, data: fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", nonroot)},
		{path: "/tmp/", mode: 0o1777},
	}
}

// newLayer packs files, and the folders above them, owned by root and without times, by name.
func newLayer(files []file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range withParents(files) {
		if err := writeFile(w, f); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithCompressedCaching,
		tarball.WithCompressionLevel(gzip.BestSpeed), // images are sent over short distances, and a machine builds many
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("compress layer: %w", err)
	}
	return layer, nil
}

func writeFile(w *tar.Writer, f file) error {
	header := &tar.Header{
		Name:     strings.TrimPrefix(f.path, "/"),
		Mode:     f.mode,
		Size:     int64(len(f.data)),
		ModTime:  time.Unix(0, 0),
		Typeflag: tar.TypeReg,
		Format:   tar.FormatPAX,
	}
	if strings.HasSuffix(f.path, "/") {
		header.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(f.data)
	return err
}

// withParents adds the folders that files are in and sorts all by path.
func withParents(files []file) []file {
	byPath := map[string]file{}
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.path, "/")); dir != "/"; dir = path.Dir(dir) {
			if _, known := byPath[dir+"/"]; !known {
				byPath[dir+"/"] = file{path: dir + "/", mode: 0o755}
			}
		}
		byPath[f.path] = f
	}
	var all []file
	for _, f := range byPath {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return all
}
