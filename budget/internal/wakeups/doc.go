// Package wakeups finds the objects that an event wakes, apart from the delivery of events. The API server may have to be
// asked for that: a lookup that takes long, or fails, delays no other event.
package wakeups
