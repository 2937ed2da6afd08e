// Package release says which modules of the workspace to release next, as what version, and builds what is released.
//
// A module is one that the workspace lists, except test. Its versions are the tags FOLDER/vX.Y.Z, such as cloneset/api/v0.2.0.
// Notes are files in MODULE/.changes, one a change, whose names begin with breaking-, feature- or fix-; what stands in
// the module's CHANGELOG.md under Unreleased counts as features.
package release
