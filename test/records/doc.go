// Package records keeps what a run has measured: a file of JSON for each run, named after its date and commit, and the part
// of a page in the docs that is made from such a file.
package records
