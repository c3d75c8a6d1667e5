// SPDX-License-Identifier: Apache-2.0

// The controller-runtime way: a reconciler over a cached client, for changes of the generation.
package main

import (
	"context"
	"net/http"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

type reconciler struct {
	client.Client
	count  *os.File
	status bool
}

func widget() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	return object
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := widget()
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.status {
		before := object.DeepCopy()
		round, _, _ := unstructured.NestedInt64(object.Object, "spec", "round")
		if err := unstructured.SetNestedField(object.Object, round, "status", "seen"); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, err
		}
	}
	_, err := r.count.WriteString(".")
	return ctrl.Result{}, err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	log.SetLogger(zap.New())
	count, err := os.OpenFile(os.Getenv("BENCH_COUNT"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	must(err)
	concurrent, err := strconv.Atoi(os.Getenv("BENCH_CONCURRENT"))
	must(err)
	config := ctrl.GetConfigOrDie()
	config.QPS, config.Burst = -1, -1
	config.ContentType = "application/json" // devserver knows no protobuf, in which Leases would be written
	config.Transport = &http.Transport{MaxIdleConnsPerHost: concurrent + 8} // it keeps 25, and would connect anew for all others
	lease := os.Getenv("BENCH_LEASE")
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"},
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		LeaderElection: lease != "", LeaderElectionID: lease, LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true})
	must(err)
	must(ctrl.NewControllerManagedBy(manager).Named("widgets").
		For(widget(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrent}).
		Complete(&reconciler{manager.GetClient(), count, os.Getenv("BENCH_STATUS") == "1"}))
	must(manager.Start(ctrl.SetupSignalHandler()))
}
