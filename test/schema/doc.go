// Package schema compares the committed CRDs with the Go types of Kubernetes that they embed. It has tests alone.
package schema
