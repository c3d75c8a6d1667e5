// SPDX-License-Identifier: Apache-2.0

// The handler of examples/website with the kit: a page in a ConfigMap, a Deployment that serves it, a Service in front.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"reconciled"
)

type website struct {
	Spec struct {
		HTML     *string `json:"html"`
		Replicas *int    `json:"replicas"`
	} `json:"spec"`
}

// A map of JSON.
type object = map[string]any

func children(name, page string, replicas int) []any {
	labels := object{"website": name}
	// The page's hash among the annotations: another page is another pod.
	hash := sha256.Sum256([]byte(page))
	container := object{"name": "web", "image": "nginx:stable", "ports": []any{object{"containerPort": 80}},
		"volumeMounts": []any{object{"name": "page", "mountPath": "/usr/share/nginx/html"}}}
	template := object{
		"metadata": object{"labels": labels, "annotations": object{"page": hex.EncodeToString(hash[:])}},
		"spec": object{"volumes": []any{object{"name": "page", "configMap": object{"name": name}}},
			"containers": []any{container}},
	}
	return []any{
		object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"index.html": page}},
		object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name},
			"spec": object{"replicas": replicas, "selector": object{"matchLabels": labels}, "template": template}},
		object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name},
			"spec": object{"selector": labels, "ports": []any{object{"port": 80, "protocol": "TCP"}}}},
	}
}

func reconcile(_ context.Context, request *reconciled.Request) (*reconciled.Answer, error) {
	var site website
	if err := request.Object.Into(&site); err != nil {
		return nil, &reconciled.PermanentError{Err: err}
	}
	if site.Spec.HTML == nil {
		return nil, reconciled.Permanentf("the web site lacks spec.html")
	}
	replicas := 1
	if site.Spec.Replicas != nil {
		replicas = *site.Spec.Replicas
	}
	name, namespace := request.Object.Metadata.Name, request.Object.Metadata.Namespace
	request.Infof("web site %s/%s", namespace, name)
	return &reconciled.Answer{
		Children: children(name, *site.Spec.HTML, replicas),
		Status:   object{"address": "http://" + name + "." + namespace},
	}, nil
}

func finalize(_ context.Context, request *reconciled.Request) (*reconciled.Answer, error) {
	request.Infof("web site %s goes, and its children with it", request.Object.Metadata.Name)
	return nil, nil
}

func main() {
	reconciled.Serve(reconciled.Handler{Reconcile: reconcile, Finalize: finalize})
}
