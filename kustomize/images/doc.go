// Package images pushes the images of a release from a folder to a registry, for clusters without access to the registry of
// the release.
//
// The folder is an OCI layout, as a release has it. An image for several platforms is pushed with all of them, and each keeps
// its digest. Requests are authenticated with the credentials of the user's container tools.
package images
