// Package admission has the defaults and the validation of ImageListPullJobs. It is pure.
package admission
