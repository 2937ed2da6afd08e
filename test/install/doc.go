// Package install puts a feature on the local cluster the way a user would: its image built and
// pushed, its overlay rendered and applied, its Deployment awaited.
//
// The demo and the end-to-end tests share it. It must know nothing of a feature but its name.
package install
