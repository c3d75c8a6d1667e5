// SPDX-License-Identifier: Apache-2.0

// The probe in Go: README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"reconciled"
)

type spec struct {
	Do, Text, Prefix, Fifo string
	Size                   int64 `json:"size"`
}

type object = map[string]any

func children(request *reconciled.Request) *reconciled.Answer {
	var shown []string
	for _, child := range request.Children {
		shown = append(shown, child.Metadata.Name)
	}
	return &reconciled.Answer{Children: []any{object{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": request.Object.Metadata.Name}, "data": object{"shown": strings.Join(shown, " ")}}}}
}

func say(text string) (*reconciled.Answer, error) {
	return &reconciled.Answer{Message: text}, nil
}

func reconcile(ctx context.Context, request *reconciled.Request) (*reconciled.Answer, error) {
	var thing struct{ Spec spec }
	if err := request.Object.Into(&thing); err != nil {
		return nil, err
	}
	switch spec := thing.Spec; spec.Do {
	case "status":
		return &reconciled.Answer{Status: object{"name": request.Object.Metadata.Name, "size": spec.Size},
			RequeueAfter: reconciled.Duration(5 * time.Minute)}, nil
	case "metrics":
		return &reconciled.Answer{Metrics: []reconciled.Metric{
			{Name: "probe_calls", Action: "add", Value: 1.5, Labels: object{"name": request.Object.Metadata.Name}},
			{Name: "probe_seconds", Action: "observe", Buckets: []float64{0.5, 2}}}}, nil
	case "at":
		at := time.Date(2036, time.February, 29, 3, 0, 0, 125_000_000, time.UTC)
		return &reconciled.Answer{RequeueAt: &at}, nil
	case "children":
		return children(request), nil
	case "childless":
		return &reconciled.Answer{Children: []any{}}, nil
	case "conditions":
		return &reconciled.Answer{
			Conditions: []reconciled.Condition{{Type: "Ready", Status: "True", Reason: "Up", Message: "it is up"}},
			Events:     []reconciled.Event{{Type: "Warning", Reason: "Slow", Note: "it took long"}}}, nil
	case "print":
		fmt.Println("to standard output")
		return say("printed")
	case "log":
		request.Infof("one")
		request.Warningf("two\nthree")
		request.Errorf("four")
	case "temporary":
		// Wrapped, as errors in Go are.
		return nil, fmt.Errorf("%w", reconciled.Temporaryf(90*time.Second, "the service is away"))
	case "backoff":
		return nil, reconciled.Temporaryf(0, "the service is away")
	case "permanent":
		return nil, reconciled.Permanentf("spec.size is negative")
	case "half":
		return &reconciled.Answer{Status: object{"half": true}, Children: []any{}}, errors.New("half of it")
	case "crash":
		panic("broken on purpose")
	case "text":
		return say(spec.Text)
	case "attempt":
		return say(fmt.Sprintf("%s: attempt %d of %s, %s after: %s", spec.Prefix, request.Attempt, request.Watch,
			request.Reason, request.LastError))
	case "wait":
		reconciled.Infof("it waits")
		text, err := os.ReadFile(spec.Fifo)
		<-ctx.Done() // which SIGTERM ends
		return &reconciled.Answer{Message: string(text)}, err
	case "held":
		request.Infof("it waits")
		text, err := os.ReadFile(spec.Fifo)
		return &reconciled.Answer{Message: string(text)}, err
	case "nil":
		var nowhere *os.PathError
		return nil, nowhere
	case "channel":
		return &reconciled.Answer{Status: make(chan int)}, nil
	}
	return nil, nil
}

func finalize(context.Context, *reconciled.Request) (*reconciled.Answer, error) {
	return reconciled.Unfinished(5 * time.Second), nil
}

func nightly(_ context.Context, request *reconciled.Request) (*reconciled.Answer, error) {
	return say(request.Watch + " of " + request.Object.Metadata.Name)
}

func prepare(_ context.Context, request *reconciled.Request) (*reconciled.Answer, error) {
	return &reconciled.Answer{Patch: object{"data": object{"prepared": request.Watch}}}, nil
}

func main() {
	handler := reconciled.Handler{Schedules: map[string]reconciled.Func{"nightly": nightly}}
	if len(os.Args) == 1 {
		handler.Reconcile, handler.Finalize, handler.Startup = reconcile, finalize, prepare
	}
	reconciled.Serve(handler)
}
