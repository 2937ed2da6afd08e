// Package plan decides about one ImageListPullJob: which ImagePullJobs it makes, which it gives up, and how far it is.
//
// A snapshot goes in; actions and the next status come out. It is pure, and linear in the images of the job.
package plan
