// Package features reads the feature gates once and hands them out as an immutable value.
//
// In go the value of --feature-gates, the environment and the names that an operator consults; out
// come a Set and the notes that belong in the log. It must never keep a gate in a package variable,
// and nothing may change a Set after Parse.
package features
