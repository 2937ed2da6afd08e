// Package predownload plans to have the images of a new revision on the nodes before pods are updated to
// it in place.
//
// A rollout and the known image pull jobs go in; the jobs to create and to delete come out, with the events for the
// user. Pulling ahead only saves time: nothing may ever wait for it or fail with it, so that the result runs aside,
// after everything else.
package predownload
