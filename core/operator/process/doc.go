// Package process has what every process of ours does, be it an operator or an agent: the flags of logs, gates and
// limits, the configuration by which it reaches the API server, the wait for its kinds, and an HTTP server that ends
// with the process. Flags and functions go in, settings come out. It knows no controllers.
package process
