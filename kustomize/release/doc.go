// Package release plans the next releases of the modules of the workspace, with their versions, and builds the files of a release.
//
// A module is one that the workspace lists, except this one and the modules of tests. Its versions are the tags FOLDER/vX.Y.Z, such as
// cloneset/api/v0.2.0. Notes are files in MODULE/.changes, one a change, with names that begin with breaking-, feature- or fix-; entries
// under Unreleased in the module's CHANGELOG.md count as features.
package release
