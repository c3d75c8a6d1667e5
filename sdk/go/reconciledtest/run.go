// SPDX-License-Identifier: Apache-2.0

// Package reconciledtest is for tests of handlers.
package reconciledtest

import (
	"context"
	"encoding/json"

	"reconciled"
)

// Run gives the answer that the operator would get, failures included. What a request has besides the object is filled
// in, or is set by `more`.
func Run(function reconciled.Func, object map[string]any, more ...func(*reconciled.Request)) map[string]any {
	whole := map[string]any{"apiVersion": "example.com/v1", "kind": "Test"}
	metadata := map[string]any{"name": "test", "namespace": "default", "uid": "00000000-0000-4000-8000-000000000000"}
	for key, value := range object {
		whole[key] = value
	}
	if given, ok := object["metadata"].(map[string]any); ok {
		for key, value := range given {
			metadata[key] = value
		}
	}
	whole["metadata"] = metadata
	request := &reconciled.Request{Version: 1, Action: "reconcile", Reason: "added", Attempt: 1, Watch: "test", Object: Object(whole)}
	for _, set := range more {
		set(request)
	}
	handler := reconciled.Handler{Reconcile: function, Finalize: function, Deleted: function, Unselected: function,
		Schedules: map[string]reconciled.Func{request.Watch: function}, Startup: function}
	answer := map[string]any{}
	if err := json.Unmarshal(handler.Answer(context.Background(), request), &answer); err != nil {
		panic(err)
	}
	return answer
}

// Object makes an object of a map, for children and related objects of a request.
func Object(content map[string]any) (object reconciled.Object) {
	text, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		panic(err)
	}
	return object
}
