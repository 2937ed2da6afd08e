module github.com/flotilla-project/flotilla/test

go 1.26.0
