// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package current names the programs that the cluster tests build at pinned versions.
package current

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
)
