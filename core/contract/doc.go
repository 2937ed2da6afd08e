// Package contract names every label, annotation, environment variable, readiness gate,
// condition, finalizer and revision key that crosses the border of a module or that lives in
// users' clusters already, with its grammar, its writers and its readers.
//
// It holds names, formats and accessors for kinds that other modules own. It must never hold
// behaviour, and it imports nothing but the Kubernetes API types and apimachinery.
package contract
