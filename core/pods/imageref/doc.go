// Package imageref is the one normalization of image references.
//
// What users write goes in; out come the name and the tag under which NodeImages store an image, and the
// reference that a container runtime gets. The grammar is Docker's. It never asks a registry.
package imageref
