// Package install installs features on the local cluster as a user does: it builds and pushes the images, renders and
// applies the overlay, and waits until its workloads are available.
//
// A feature is a name, such as "cloneset": the folder of its module and of its overlay. Everything else is read from
// the work tree. The demo, the end-to-end tests and the benchmarks share the package. It must know nothing of a feature
// but its name.
package install
