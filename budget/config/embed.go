// Package config holds the manifests of the manager of budgets, as files and embedded.
//
// Tests and installers read the same bytes as kubectl does. It holds no code.
package config

import "embed"

// Files are the kustomizations below this folder. Build "default" for all of the feature except the
// namespace, which all operators share.
//
//go:embed */*.yaml
var Files embed.FS
