// Package admission says what ImageListPullJobs may look like: their defaults, and what is refused. It is pure.
package admission
