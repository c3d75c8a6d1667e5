module example.com/bench/shell-operator

go 1.26

require github.com/flant/shell-operator v1.11.0

tool github.com/flant/shell-operator/cmd/shell-operator
