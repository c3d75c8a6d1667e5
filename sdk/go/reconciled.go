// SPDX-License-Identifier: Apache-2.0

// Package reconciled is for handlers of reconciled, the supervisor of Kubernetes operators: docs/kits.md.
//
//	func widget(ctx context.Context, request *reconciled.Request) (*reconciled.Answer, error) {
//		var object struct{ Spec struct{ Size int } }
//		if err := request.Object.Into(&object); err != nil {
//			return nil, err
//		}
//		if object.Spec.Size < 0 {
//			return nil, reconciled.Permanentf("spec.size is negative")
//		}
//		return &reconciled.Answer{Status: object.Spec}, nil
//	}
//
//	func main() {
//		reconciled.Serve(reconciled.Handler{Reconcile: widget})
//	}
//
// The same program is a handler for `exec` and for `serve`: a request with an id asks for one line and goes on, a
// request without one is the only one. With `handler.parallel` in the configuration, the functions run at the same time,
// for different objects.
package reconciled

import (
	"bufio"
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	requestVersion = 1
	exitData       = 65
)

// Func serves a request. Without an answer and without an error there is nothing to say. Of an answer beside an error,
// status, conditions and events are written. The context ends when the process is asked to end.
type Func func(ctx context.Context, request *Request) (*Answer, error)

// Handler has a function for each action. Reconcile must be there, unless there are only Schedules and Startup. Finalize, Deleted
// and Unselected change nothing without a function.
type Handler struct {
	Reconcile  Func            // brings the world in line with the object
	Finalize   Func            // cleans up; the object goes when it has returned
	Deleted    Func            // the object is gone; for watches without a finalizer
	Unselected Func            // the watch does not select the object any more
	Schedules  map[string]Func // by the name of the schedule: its time has come, and the object is its ConfigMap
	Startup    Func            // the operator has started, and all other handlers wait; the object is a ConfigMap of its own
}

// ---- errors

// TemporaryError ends a run that is tried again after RetryAfter, or, without it, after the object's backoff. Any other
// error has the same effect.
type TemporaryError struct {
	Err        error
	RetryAfter time.Duration
}

func (e *TemporaryError) Error() string { return e.Err.Error() }
func (e *TemporaryError) Unwrap() error { return e.Err }

// PermanentError ends a run that will fail until the object or the handler changes.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Temporaryf makes a TemporaryError, with a text as of fmt.Errorf. 0 stands for the object's backoff.
func Temporaryf(retryAfter time.Duration, format string, values ...any) error {
	return &TemporaryError{Err: fmt.Errorf(format, values...), RetryAfter: retryAfter}
}

// Permanentf makes a PermanentError, with a text as of fmt.Errorf.
func Permanentf(format string, values ...any) error {
	return &PermanentError{Err: fmt.Errorf(format, values...)}
}

// ---- logging: each line is a record of the operator's log, which has the object's fields already, unless the process has several
// requests: then the kit writes the object's key

var (
	inWork  atomic.Int32
	several atomic.Bool // it has had several requests at once
)

func logf(level, format string, values ...any) {
	text := strings.TrimSuffix(fmt.Sprintf(format, values...), "\n")
	fmt.Fprintf(os.Stderr, "%s: %s\n", level, strings.ReplaceAll(text, "\n", "\n"+level+": "))
}

// Infof writes to the log. Each line has the object's key, if the process has had several requests at once.
func (r *Request) Infof(format string, values ...any) { r.logf("info", format, values...) }

// Warningf writes to the log, as Infof does.
func (r *Request) Warningf(format string, values ...any) { r.logf("warning", format, values...) }

// Errorf writes to the log, as Infof does. It makes no error: that is fmt.Errorf.
func (r *Request) Errorf(format string, values ...any) { r.logf("error", format, values...) }

func (r *Request) logf(level, format string, values ...any) {
	if several.Load() {
		level += ": " + strings.TrimPrefix(r.Object.Metadata.Namespace+"/"+r.Object.Metadata.Name, "/")
	}
	logf(level, format, values...)
}

// Infof writes to the log what is about no object.
func Infof(format string, values ...any) { logf("info", format, values...) }

// Warningf writes to the log what is about no object.
func Warningf(format string, values ...any) { logf("warning", format, values...) }

// Errorf writes to the log what is about no object.
func Errorf(format string, values ...any) { logf("error", format, values...) }

// ---- types that are more than their fields

// Object is an object of Kubernetes: what all of them have, and with Into the rest.
type Object struct {
	APIVersion string
	Kind       string
	Metadata   Metadata
	text       json.RawMessage
}

// Metadata is what handlers read most; Object.Into reads more.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         string            `json:"uid"`
	Generation  int64             `json:"generation"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// UnmarshalJSON keeps the text for Into.
func (o *Object) UnmarshalJSON(text []byte) error {
	var head struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   Metadata `json:"metadata"`
	}
	if err := unmarshalExact(text, &head); err != nil {
		return err
	}
	*o = Object{head.APIVersion, head.Kind, head.Metadata, append(json.RawMessage(nil), text...)}
	return nil
}

// MarshalJSON gives the object as it came.
func (o Object) MarshalJSON() ([]byte, error) {
	if o.text == nil {
		return nil, errors.New("an Object that was not read cannot be written: use a struct or a map")
	}
	return o.text, nil
}

// Into reads the object into a struct or a map, as json.Unmarshal does. But a field with a json tag gets the member of that very
// name: json.Unmarshal alone takes "Size" for "size" as well, which the schema of the API server does not know and has not checked.
//
// What does not fit, as 1e21 or "3" into an int, is a permanent error.
func (o Object) Into(target any) error {
	if err := unmarshalExact(o.text, target); err != nil {
		return Permanentf("the object cannot be read: %w", err)
	}
	return nil
}

var readsItself = []reflect.Type{reflect.TypeOf((*json.Unmarshaler)(nil)).Elem(), reflect.TypeOf((*encoding.TextUnmarshaler)(nil)).Elem()}

func unmarshalExact(text []byte, target any) error {
	var whole any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&whole); err != nil {
		return err
	}
	dropped := false
	if target != nil {
		dropInexact(whole, reflect.TypeOf(target), &dropped)
	}
	if dropped {
		var err error
		if text, err = json.Marshal(whole); err != nil {
			return err
		}
	}
	return json.Unmarshal(text, target)
}

// dropInexact removes the members that json.Unmarshal would take for fields of the target, though their names differ.
func dropInexact(value any, target reflect.Type, dropped *bool) {
	for target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	for _, itself := range readsItself {
		if reflect.PointerTo(target).Implements(itself) {
			return
		}
	}
	switch found := value.(type) {
	case []any:
		if target.Kind() == reflect.Slice || target.Kind() == reflect.Array {
			for _, entry := range found {
				dropInexact(entry, target.Elem(), dropped)
			}
		}
	case map[string]any:
		if target.Kind() == reflect.Map {
			for _, member := range found {
				dropInexact(member, target.Elem(), dropped)
			}
		} else if target.Kind() == reflect.Struct {
			dropInexactMembers(found, fieldsOf(target), dropped)
		}
	}
}

func dropInexactMembers(object map[string]any, fields []field, dropped *bool) {
	for key, member := range object {
		exact, alike := false, false
		for _, field := range fields {
			if field.name == key || !field.tagged && strings.EqualFold(field.name, key) {
				dropInexact(member, field.kind, dropped)
				exact = true
			}
			alike = alike || strings.EqualFold(field.name, key)
		}
		if alike && !exact {
			delete(object, key)
			*dropped = true
		}
	}
}

// field is one of a struct as json.Unmarshal sees it. One without a tag has no exact name in JSON.
type field struct {
	name   string
	kind   reflect.Type
	tagged bool
}

// fieldsOf gives those of a struct, and of the structs that are embedded in it.
func fieldsOf(target reflect.Type) (fields []field) {
	for i := 0; i < target.NumField(); i++ {
		found := target.Field(i)
		name, _, _ := strings.Cut(found.Tag.Get("json"), ",")
		embedded := found.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		if name != "" {
			fields = append(fields, field{name, found.Type, true})
		} else if found.Anonymous && embedded.Kind() == reflect.Struct && embedded != target {
			fields = append(fields, fieldsOf(embedded)...)
		} else {
			fields = append(fields, field{found.Name, found.Type, false})
		}
	}
	return fields
}

// Duration is a time.Duration, written as requeueAfter and retryAfter want it.
type Duration time.Duration

// MarshalJSON rounds to milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(fmt.Sprintf("%dms", time.Duration(d).Milliseconds()))
}

// MarshalJSON writes an empty list of children, which deletes all of them; nil leaves them as they are. Likewise of patches.
func (a Answer) MarshalJSON() ([]byte, error) {
	type plain Answer
	wire := struct {
		plain
		Children *[]any `json:"children,omitempty"`
		Patches  *[]any `json:"patches,omitempty"`
	}{plain: plain(a)}
	if a.Children != nil {
		wire.Children = &a.Children
	}
	if a.Patches != nil {
		wire.Patches = &a.Patches
	}
	return json.Marshal(wire)
}

// Unfinished answers `finalize`: the object is not released, and the handler runs again after this time.
func Unfinished(after time.Duration) *Answer {
	done := false
	return &Answer{Done: &done, RequeueAfter: Duration(after)}
}

// ---- one request

// find gives nil where nothing is to be done. An error is what nobody serves although the configuration asks for it: the work
// would be missed without a word.
func (h Handler) find(request *Request) (function Func, err error) {
	switch request.Action {
	case "reconcile":
		if function = h.Reconcile; function == nil {
			err = Permanentf("the handler has no function that reconciles objects of the watch %s: set Handler.Reconcile", request.Watch)
		}
	case "finalize":
		function = h.Finalize
	case "deleted":
		function = h.Deleted
	case "unselected":
		function = h.Unselected
	case "schedule":
		if function = h.Schedules[request.Watch]; function == nil {
			err = Permanentf("the handler has no function for the schedule %s: set Handler.Schedules[%q]", request.Watch, request.Watch)
		}
	case "startup":
		if function = h.Startup; function == nil {
			err = Permanentf("the handler has no function for startup: set Handler.Startup")
		}
	}
	return function, err
}

func (h Handler) run(ctx context.Context, request *Request) (answer *Answer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			request.Errorf("the handler has failed: %v\n%s", cause, debug.Stack())
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if request.Version != 0 && request.Version != requestVersion {
		return nil, Permanentf("the request has version %d, and this kit knows %d: use a newer kit", request.Version, requestVersion)
	}
	function, err := h.find(request)
	if function == nil {
		return nil, err
	}
	return function(ctx, request)
}

func failure(answer *Answer, err error) *Answer {
	failed := &Answer{Error: err.Error()}
	if answer != nil {
		failed.Status, failed.Conditions, failed.Events = answer.Status, answer.Conditions, answer.Events
	}
	if failed.Error == "" {
		failed.Error = fmt.Sprintf("%T", err)
	}
	var temporary *TemporaryError
	var permanent *PermanentError
	if errors.As(err, &permanent) {
		failed.Permanent = true
	} else if errors.As(err, &temporary) {
		failed.RetryAfter = Duration(temporary.RetryAfter)
	}
	return failed
}

// Answer gives the answer to a request as the operator gets it, without id. A failure is an answer as well.
func (h Handler) Answer(ctx context.Context, request *Request) (text []byte) {
	defer func() {
		if cause := recover(); cause != nil { // of a method of its answer or error, as of one that is a nil pointer
			request.Errorf("the handler has failed: %v\n%s", cause, debug.Stack())
			text, _ = json.Marshal(&Answer{Error: fmt.Sprintf("panic: %v", cause)})
		}
	}()
	answer, err := h.run(ctx, request)
	if err != nil {
		answer = failure(answer, err)
	} else if answer == nil {
		answer = &Answer{}
	}
	text, err = json.Marshal(answer)
	if err != nil {
		text, _ = json.Marshal(failure(nil, fmt.Errorf("the answer is no JSON: %w", err)))
	}
	return text
}

// ---- the loop

// The operator writes the id first.
var idFirst = regexp.MustCompile(`^\s*\{\s*"id"\s*:\s*(\d{1,18})\b`)

// parse gives the request; or, with its id alone, the answer to one that cannot be read (nested too deeply, say): others wait
// for the process, so it goes on.
func parse(line []byte) (*Request, []byte) {
	request := &Request{}
	err := json.Unmarshal(line, request)
	if err == nil && request.Action == "" {
		err = errors.New("it is no object with an action")
	}
	if err != nil {
		Errorf("the request cannot be read: %v", err)
		id := idFirst.FindSubmatch(line)
		if id == nil {
			os.Exit(exitData)
		}
		number, _ := strconv.ParseInt(string(id[1]), 10, 64)
		refusal, _ := json.Marshal(failure(nil, Permanentf("the request cannot be read: %v", err)))
		return &Request{ID: number}, refusal
	}
	return request, nil
}

func withID(answer []byte, id int64) []byte {
	head := fmt.Sprintf(`{"id":%d`, id)
	if len(answer) > len("{}") {
		head += ","
	}
	return append([]byte(head), answer[1:]...)
}

// Serve answers requests until there are no more; then the process ends. Call it once. What anybody prints to os.Stdout
// from here on goes to standard error.
func Serve(handler Handler) {
	ofWatches := handler.Finalize != nil || handler.Deleted != nil || handler.Unselected != nil
	if handler.Reconcile == nil && (ofWatches || handler.Startup == nil && len(handler.Schedules) == 0) {
		panic("reconciled: the handler lacks Reconcile")
	}
	answers := os.Stdout
	os.Stdout = os.Stderr
	// A request in work has a share of it. So SIGTERM ends the process at once while it waits for a request, or else when the
	// answers are written, and the end of the input does the same.
	var busy sync.RWMutex
	var writing sync.Mutex
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() {
		<-ctx.Done()
		busy.Lock()
		os.Exit(0)
	}()
	for requests := bufio.NewReader(os.Stdin); ; {
		line, end := requests.ReadBytes('\n')
		if len(line) == 0 {
			busy.Lock()
			if end != io.EOF {
				Errorf("standard input cannot be read: %v", end)
				os.Exit(1)
			}
			os.Exit(0)
		}
		busy.RLock()
		if inWork.Add(1) > 1 {
			several.Store(true)
		}
		go func() {
			defer busy.RUnlock()
			request, answer := parse(line)
			if answer == nil {
				answer = handler.Answer(ctx, request)
			}
			if request.ID != 0 {
				answer = withID(answer, request.ID)
			}
			inWork.Add(-1) // the next request may come before Write returns
			writing.Lock()
			defer writing.Unlock()
			if _, err := answers.Write(append(answer, '\n')); err != nil || request.ID == 0 {
				os.Exit(0)
			}
		}()
	}
}
