// Package quickstart follows the quick start page on a real cluster with the install file of a release. The page ends with the
// removal of the operators' namespace, so this suite runs alone and the suites after it install their features again.
package quickstart
