// Package podspec says what pod specs mean: what an absent field stands for, and when two templates mean the same.
//
// Templates go in; templates with the API server's defaults written out, or an answer, come out. It serves comparison
// alone: a stored template is never defaulted. It must never depend on the cluster; defaults that only the cluster
// knows are those of package podtemplate.
package podspec
