// Package plan decides about one NodeImage: whether it should exist, what of its spec is over, and which of its pulls
// no agent works on any more.
//
// A snapshot goes in; actions and the next status come out. It is pure and its cost is linear in the tags of the one
// object. It never requests a pull: whoever writes the spec does.
package plan
