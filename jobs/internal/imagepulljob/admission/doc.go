// Package admission has the defaults and the validation of ImagePullJobs.
//
// An object goes in, with the stored one for an update; the object with defaults or a list of errors comes out. It is
// pure.
package admission
