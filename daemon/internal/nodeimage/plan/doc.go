// Package plan decides about one NodeImage: whether it should exist, which parts of its spec are over, and which of its
// pulls no agent works on any more.
//
// A snapshot goes in; actions and the next status come out. It is pure and its cost is linear in the tags of the one
// object. It never requests a pull: the writers of the spec do.
package plan
