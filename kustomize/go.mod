module github.com/flotilla-project/flotilla/kustomize

go 1.26.0
