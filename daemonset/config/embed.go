// Package config holds the manifests of the DaemonSet operator, as files and embedded.
//
// Tests and installers read the same bytes as kubectl does. It holds no code.
package config

import "embed"

// Files are the manifests below this folder.
//
//go:embed */*.yaml
var Files embed.FS
