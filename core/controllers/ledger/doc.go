// Package ledger records decisions about requests in the statuses of objects, before the requests are carried out.
//
// Requests about one object that arrive while its status is being written share the next write. A write names the version
// that its decisions were made from, so that any number of processes can decide at the same time; after a conflict all of
// its requests are decided again, from the version that the server has. Only a recorded decision grants a request. While
// the server refuses the writes of an object, pauses between them grow, and only requests that need no write are
// answered.
package ledger
