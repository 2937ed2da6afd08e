// Package annotation reads and writes the JSON of annotations of an update in place. It knows no key.
package annotation
