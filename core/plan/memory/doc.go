// Package memory keeps values that a process remembers of objects between passes.
//
// A key, which is the name and the UID of an object, goes in with a value; the value comes out until the object is
// forgotten or another one has been made under its name: that one inherits nothing. The package never decides anything
// by the values that it keeps.
package memory
