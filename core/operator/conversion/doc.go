// Package conversion converts objects between the versions of their kind without rewriting the parts that the versions
// share: decoded JSON goes in and comes out, and only the members that differ are converted through Go types.
//
// A round trip of whole objects through Go types would rewrite embedded pod templates, and users' tools would see
// changes that no user made. Fields that one version cannot express are kept in an annotation that only conversion writes
// and reads. Each kind defines which members differ.
package conversion
