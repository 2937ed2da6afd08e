// Package plan says what becomes of one NodeImage: whether it should exist, what of its spec is over, which
// of its pulls nobody works on any more.
//
// A snapshot goes in; actions and the next status come out. It is pure and its cost is linear in the tags of
// the one object. It never asks for a pull: that is for whoever writes the spec.
package plan
