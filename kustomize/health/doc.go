// Package health is "flotilla status", "flotilla versions" and "flotilla doctor": the installed features and their problems.
//
// It reads and asks for dry runs, and writes nothing. It compares the live objects with the manifests that are built in.
package health
