// Package imagepull pulls the images of the node's NodeImage.
//
// The NodeImage goes in. Images end up in the container runtime, and the NodeImage's status and events report the
// result. Package plan decides which images are pulled when, and the status; here pulls run, each in a goroutine.
// Everything that must survive a restart is in the status: an agent that starts again begins unfinished pulls again
// and keeps finished ones.
//
// It writes the status of its own NodeImage only, always on top of the version that its plan was made from, so that it
// never overwrites a write of the manager in between. It reads credentials for the pulls at hand, and never logs
// them.
package imagepull
