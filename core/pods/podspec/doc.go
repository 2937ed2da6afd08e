// Package podspec defines the meaning of pod specs: the value of an absent field, and when two templates mean the same.
//
// Templates go in; templates with the API server's defaults written out, or an answer, come out. It serves comparison
// alone: a stored template is never defaulted. It must never depend on the cluster; package podtemplate has the
// defaults that only the cluster knows.
package podspec
