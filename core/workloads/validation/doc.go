// Package validation holds the rules of admission that several workloads share.
//
// A part of a spec and its path go in; its errors come out, in the words that users of the published API know. A rule
// looks at its input and nothing else; it must never change it.
package validation
