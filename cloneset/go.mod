module github.com/flotilla-project/flotilla/cloneset

go 1.26.0
