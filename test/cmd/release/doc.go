// Command release says what to release, and does it step by step.
//
//	release check           which modules break programs that import their last release without a note
//	release plan            which modules have changed since their tag, which must follow, as what version
//	release prepare         changelogs, manifests and requirements of these versions, to be committed
//	release build FOLDER    images, install files, SBOMs, notes and checksums of what is prepared
//	release tag             the tags of what is prepared; it pushes none
//	release rehearse FOLDER all of this for a copy of the work tree and the platform of this machine
package main
