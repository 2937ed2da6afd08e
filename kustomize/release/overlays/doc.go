// Package overlays renders the overlays of the work tree with images that were built.
//
// A feature, images and components go in; manifests, or the objects in them, come out. They name each image by its digest, so
// that exactly the images that were built run.
package overlays
