// Command images builds the images of the managers and node agents and prints each one's reference and digest.
//
//	images --registry ghcr.io/someone --version 0.1.0
//	images --registry 127.0.0.1:7500 --platforms linux/amd64 --only cloneset   for a local cluster
//	images --output folder                                                     as an OCI layout
//	images --registry 127.0.0.1:7500 --apps v1,v2,v3                           the demo application in place of managers
//
// It needs no container engine, and no network beyond the Go module proxy and the registry.
package main
