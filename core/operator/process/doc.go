// Package process has the parts that every process of this project needs, operator or agent: its main function, the flags
// for logs, feature gates and limits, the client configuration, readiness at the start, waiting for kinds, and the
// endpoints: metrics, profiles, and a server that ends with the process. Flags and functions go in, settings and handlers
// come out. It knows no controllers.
package process
