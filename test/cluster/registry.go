package cluster

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// registryAddress returns the address of the registry for nodes.
func registryAddress() string { return fmt.Sprintf("%s:%d", controlPlaneAddress, registryPort) }

// serveRegistry serves an image registry over plain HTTP until the cluster ends. Blobs are on disk, manifests in
// memory.
func serveRegistry(ctx context.Context, address, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the registry's folder: %w", err)
	}
	logger := log.New(os.Stderr, "", log.LstdFlags)
	handler := registry.New(
		registry.Logger(logger),
		registry.WithBlobHandler(registry.NewDiskBlobHandler(filepath.Clean(folder))),
	)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for image requests: %w", err)
	}
	server := &http.Server{
		Handler:           &guard{registry: handler},
		ErrorLog:          logger,
		ReadHeaderTimeout: 10 * time.Second,
	}
	return server.Serve(listener)
}
