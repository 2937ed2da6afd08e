// Package wakeups finds whom an event wakes, beside the delivery of events. The API server may have to be asked for that: a
// lookup that takes long, or fails, delays no other event.
package wakeups
