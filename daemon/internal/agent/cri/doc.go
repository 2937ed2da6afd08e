// Package cri reaches the container runtimes of the node through CRI v1.
//
// A folder with sockets goes in. Runtimes finds which of the known sockets are there, keeps a connection to each,
// reports whether one answers, and hands out the runtime that keeps a container or that pulls images. A runtime that is
// missing or restarts is an error of the calls that need it and a reason in Ready; it never ends the process. What
// runtimes say comes out as types of this package, and what the kubelet wrote on its containers comes out decoded.
//
// It is the only package outside tests that imports cri-client and cri-api. It decides nothing: what is pulled or
// stopped, and when, is decided elsewhere. Environments of containers hold secrets; they are returned, and never
// logged.
package cri
