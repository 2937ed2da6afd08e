// Package execute carries out plans on the API server.
//
// Steps of actions go in, a progress.Outcome comes out. Package progress defines the order of actions, how many are under
// way at a time, the meaning of an answer and the end of the plan; this package sends the requests, for each action in a
// goroutine of its own. Every write names the UID and the resourceVersion that the plan was made from, ends within a
// timeout well inside the leader's lease, and is recorded for the freshness tracker.
//
// A pass begins writes for DefaultPass; the rest is left to the next one.
//
// It only sends the writes of the plan, never reads the objects that plans read, and never retries: the next plan decides
// again.
package execute
