// Package informers shows a world as the informers of an operator's cache would.
//
// The options of a cache and a view go in; of each kind the objects that the options select come out, transformed and with the
// indexes that the operator adds. A fastclient.Reader reads them as it reads a cache of a server. It writes nothing.
package informers
