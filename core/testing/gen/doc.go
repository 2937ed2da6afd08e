// Package gen builds objects for tests: gen.Pod("web-1", gen.Ready(gen.Epoch()), gen.Revision("web-abc")).
//
// A name and options go in, a complete object comes out. Options apply in the order given. Equal
// calls build equal objects: there is no clock and nothing random. Only tests may import it.
package gen
