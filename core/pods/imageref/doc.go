// Package imageref is the one normalization of image references.
//
// The input is a reference as users write it. The output is the name and the tag under which NodeImages store an image,
// and the reference for a container runtime. The grammar is Docker's. It never asks a registry.
package imageref
