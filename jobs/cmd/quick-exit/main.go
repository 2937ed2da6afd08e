// Command quick-exit exits with code 0, whatever its arguments: its image replaces the image of a sidecar that is to
// end on a virtual node.
package main

func main() {}
