// Package docs proves that readers of the pages arrive where links say.
package docs
