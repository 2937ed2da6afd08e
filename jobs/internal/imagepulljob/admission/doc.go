// Package admission says what ImagePullJobs may look like: their defaults, and what is refused.
//
// An object goes in, with the stored one for an update; the object with defaults or a list of errors comes out. It is
// pure.
package admission
