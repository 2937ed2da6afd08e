// Package imagelistpulljob is the controller of ImageListPullJob. It makes an ImagePullJob for each image and sums up how
// far they are.
package imagelistpulljob
