// Package health is "flotilla status", "flotilla versions" and "flotilla doctor": what is installed, and what is wrong
// with it.
//
// It reads and asks for dry runs, and writes nothing. What it finds it compares with the manifests that are built in.
package health
