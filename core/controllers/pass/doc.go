// Package pass puts together the parts that every controller works with: a client, a reader of the cache, the tracker
// that keeps it from acting on stale views, the executor of its plans, the writer of its statuses and the recorder of its
// events. A manager and the controller's options go in, the parts come out.
//
// Controller.Handle is one pass of any controller over an object: read, plan, execute, write the status, send events,
// and return when to look again. Reading and planning are given as a function; this package does not know the objects
// that are read or the contents of the plan.
//
// Each kind of error has the same consequences in every controller:
//
//   - The cache does not show the writes for the object: nothing is read, and the pass is repeated a little later.
//   - Reading fails: nothing is written. The error goes to the queue, which repeats the pass with exponential backoff.
//   - The object is gone: the memory of it is dropped. This is not an error.
//   - The spec cannot be followed (Pass.Err): the plan is executed and the status is written. The error is terminal: it
//     is logged and counted, and the pass is not repeated, because only an edit helps. If the plan asks for another
//     look, the error is only logged.
//   - The server refuses a write: its event is sent and the status shows it. This is not an error: the pass is repeated
//     when the write may be tried again (package refusals).
//   - An object has changed since it was read: as above, but without event and status.
//   - A write fails because permission, the server or its answer is missing: its event is sent, the status shows it, and
//     the error goes to the queue. If the pass keeps a steady pace, the error is only logged.
//   - The object of the pass is written, or was found changed: the status waits for the next pass, which the watch
//     event of that change starts.
//   - The server refuses the status, or that write fails: the error goes to the queue. The status is not sent again
//     before a pause is over, and notices of the status are not sent before it is written.
//   - Another writer has changed the object since its status was computed: this is neither an error nor a refusal. The
//     object is read from the server, and the status is computed from that version and written at once (Pass.Renew). A
//     pass without Renew leaves it to the next one, which the event of that change starts.
//   - The server reports a conflict though no client has changed the object: this is a refusal, but not an error.
//   - The context ends: events of the writes are sent, no further action begins, and the error goes to the queue.
package pass
