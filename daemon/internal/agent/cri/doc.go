// Package cri reaches the container runtimes of the node through CRI v1.
//
// A folder with sockets goes in. Runtimes finds which of the known sockets are there, keeps a connection to each,
// reports whether one answers, and hands out the runtime that keeps a container or that pulls images. While a
// runtime is missing or restarts, calls that need it and Ready return an error; it never ends the process. Answers
// of runtimes are returned as types of this package, with the labels and annotations of the kubelet decoded.
//
// It is the only package outside tests that imports cri-api. It decides nothing: its callers decide which images are pulled
// and which containers are stopped, and when. Environments of containers hold secrets; they are returned, and never
// logged.
package cri
