// Package features parses the feature gates once and provides them as an immutable value.
//
// A feature declares the feature gates that only its operator reads, in its description; this package has those that several
// operators read, and the names of OpenKruise's others, which every operator accepts and ignores. The value of
// --feature-gates, the environment and the feature gates of an operator go in; a Set and notes for the log come out. Feature
// gates are never kept in a package variable, and nothing may change a Set after Parse.
package features
