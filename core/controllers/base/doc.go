// Package base puts together what every controller works with: a client, a reader of the cache, the gate that keeps it
// from acting on old views, the executor of its plans, the writer of its statuses and the recorder of its events. A
// manager and what is the controller's own go in, the parts come out.
//
// Controller.Handle is the one pass that every controller runs over an object: read, think, execute, report the status,
// send events, and say when to look again. Reading and thinking are given as a function; which object is read and what
// is planned for it is never known here.
//
// What goes wrong has the same consequences for every controller:
//
//   - The cache does not show what was written for the object: nothing is read, and the pass is repeated a little later.
//   - Reading fails: nothing is written. The error goes to the queue, which repeats the pass after longer and longer times.
//   - The object is gone: what is remembered of it is dropped. It is no error.
//   - The spec cannot be followed (Pass.Err): the plan runs and the status is written. It is a terminal error, which is
//     logged and counted and not repeated: only an edit helps. When the plan asks for another look it is only logged.
//   - The server refuses a write: its event is sent and the status tells of it. It is no error: the pass is repeated when
//     the write may be tried again, as package refusals says.
//   - An object has changed since it was read: the same, but nothing is sent or told.
//   - A write fails, for want of permission, of a server or of an answer: its event is sent, the status tells of it, and
//     the error goes to the queue.
//   - The object of the pass is written, or was found changed: the status waits for the next pass, which the event of
//     that change brings.
//   - The server refuses the status, or that write fails: the error goes to the queue. The status is not sent again
//     before a pause is over, and notices of the status are not told before it is written.
//   - The object has changed since its status was judged: the same, but it is no error.
//   - The context ends: what was written is told, nothing else is begun, and the error goes to the queue.
package base
