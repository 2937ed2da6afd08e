// Package config holds the manifests of the Beacon operator, as files and embedded.
package config

import "embed"

// Files are the kustomizations below this folder.
//
//go:embed */*.yaml
var Files embed.FS
