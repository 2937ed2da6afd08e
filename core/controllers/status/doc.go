// Package status writes the status of a workload: one patch, and only when something changed.
//
// The object as it was read and as it should be go in; nothing or one merge patch of the status subresource goes out.
// The conditions themselves are made by package conditions, which plans may use. It must never write anything but the
// status.
package status
