// Package images builds Flotilla's container images without a container engine: the managers and node agents of the
// modules, and the application of make demo and the end-to-end tests.
//
// The workspace's modules go in; images in a registry or in an OCI layout folder come out. Every image holds one static
// binary, a user that is not root and a temporary folder. The same sources, version and Go release give the same digest
// on every machine: nothing that changes by itself, such as a time or a path, may get into an image.
package images
