// Package conversion converts objects between the versions of their kind without rewriting what the
// versions share: decoded JSON goes in and comes out, and only the members that differ pass through types.
//
// A round trip through Go types would rewrite embedded pod templates, and users' tools would see changes
// that nobody made. What one version cannot say travels in an annotation that conversion alone writes and
// reads. Which members differ is for the kind to say; none is known here.
package conversion
