// Package base puts together what every controller works with: a client, a reader of the cache, the gate that keeps it
// from acting on old views, the executor of its plans, the writer of its statuses and the recorder of its events.
//
// A manager and what is the controller's own go in, the parts come out. Which object is read and what is planned for it
// is never known here.
package base
