// Package kustomize holds the overlays that put the operators together, as files and embedded.
//
// Every overlay builds from a checkout with kubectl as well as from the embedded files. It knows the
// features' manifests by their paths only.
package kustomize

import "embed"

// Files are the kustomizations below this folder.
//
//go:embed argocd/*.yaml base components overlays
var Files embed.FS
