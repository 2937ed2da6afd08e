// Package features parses the feature gates once and provides them as an immutable value.
//
// The value of --feature-gates, the environment and the names that an operator reads go in; a Set and notes for the log
// come out. Feature gates are never kept in a package variable, and nothing may change a Set after Parse.
package features
