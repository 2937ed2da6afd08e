// Package apply brings objects into a cluster: in stages, by server-side apply, and waits until each stage stands.
//
// Objects go in, lines about the progress come out. It decides by kinds only and knows no feature. It never takes over
// a field that somebody else set, unless it is told to.
package apply
