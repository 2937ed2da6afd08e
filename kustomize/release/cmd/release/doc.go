// Command release plans the next releases and makes them, step by step.
//
//	release check           which modules break programs that import their last release without a note
//	release plan            which modules have changed since their tag, which must follow, and their versions
//	release prepare         changelogs, manifests and requirements of these versions, to be committed
//	release build FOLDER    images, install files, SBOMs, notes and checksums of the prepared versions
//	release tag             the tags of the prepared versions; it pushes none
//	release rehearse FOLDER all of this for a copy of the work tree and the platform of this machine
package main
