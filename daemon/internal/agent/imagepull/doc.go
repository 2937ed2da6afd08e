// Package imagepull pulls what the node's NodeImage asks for.
//
// The NodeImage goes in. Images end up in the container runtime, and the NodeImage's status and events report the
// result. Package plan decides what is pulled when, and the status; here pulls run, each in a goroutine.
// Everything that must survive a restart is in the status: an agent that starts anew begins what is unfinished again
// and keeps what is finished.
//
// It writes the status of its own NodeImage only, always on top of the version that its plan was made from, so that it
// never overwrites what the manager has written meanwhile. It reads credentials for the pulls at hand, and never logs
// them.
package imagepull
