// Package render turns kustomizations into manifests, within the process.
//
// Files go in, the YAML of the objects comes out, as "kubectl kustomize" would print it. It runs no
// plugins and reads no disk, only the files it is given.
package render
