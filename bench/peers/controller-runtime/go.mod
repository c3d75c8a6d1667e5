module example.com/bench/controller-runtime

go 1.26

require sigs.k8s.io/controller-runtime v0.25.2
