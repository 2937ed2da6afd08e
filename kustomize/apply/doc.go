// Package apply brings objects into a cluster: in stages, by server-side apply, and waits until each stage stands.
//
// Objects go in, lines about the progress come out. It decides by kinds only and knows no feature. It takes over a field of
// another field manager only if the caller asks for it.
package apply
