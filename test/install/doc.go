// Package install puts features on the local cluster the way a user would: images built and pushed,
// the overlay rendered and applied, everything in it that runs awaited.
//
// A feature is a name, such as "cloneset": the folder of its module and of its overlay. All else is
// found in the work tree. The demo, the end-to-end tests and the benchmarks share the package. It must
// know nothing of a feature but its name.
package install
