// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"

	"reconciled"
	"reconciled/reconciledtest"
)

func expect(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Errorf("%v, and not %v", found, expected)
	}
}

func TestChildrenAndAddress(t *testing.T) {
	answer := reconciledtest.Run(reconcile, object{"metadata": object{"name": "hello"},
		"spec": object{"html": "<h1>Hello</h1>", "replicas": 2}})
	expect(t, answer["status"], object{"address": "http://hello.default"})
	children := answer["children"].([]any)
	expect(t, len(children), 3)
	expect(t, children[1].(object)["spec"].(object)["replicas"], 2.0)
}

func TestWithoutAPage(t *testing.T) {
	expect(t, reconciledtest.Run(reconcile, object{}), object{"error": "the web site lacks spec.html", "permanent": true})
}

func TestItsEnd(t *testing.T) {
	finalizing := func(request *reconciled.Request) { request.Action = "finalize" }
	expect(t, reconciledtest.Run(finalize, object{}, finalizing), object{})
}
