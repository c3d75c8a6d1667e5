// SPDX-License-Identifier: Apache-2.0
//! For tests of handlers.

use crate::{json, value_of, Answer, Error, Map, Request, Value};

/// A request for this object; what it lacks besides is filled in, and may be changed.
pub fn request(object: Value) -> Request {
    let defaults = json!({"name": "test", "namespace": "default", "uid": "00000000-0000-4000-8000-000000000000"});
    let mut whole = json!({"apiVersion": "example.com/v1", "kind": "Test"});
    if let (Value::Object(whole), Value::Object(mut metadata), Value::Object(given)) = (&mut whole, defaults, object) {
        metadata.extend(given.get("metadata").and_then(Value::as_object).cloned().unwrap_or_else(Map::new));
        whole.extend(given);
        whole.insert("metadata".to_string(), Value::Object(metadata));
    }
    Request {
        version: 1,
        action: "reconcile".to_string(),
        reason: "added".to_string(),
        attempt: 1,
        watch: "test".to_string(),
        object: whole,
        ..Request::default()
    }
}

/// The answer that the operator would get, failures included.
pub fn answer(function: impl FnOnce(&Request) -> Result<Answer, Error>, request: &Request) -> Value {
    value_of(request, || function(request).unwrap_or_else(Answer::from))
}

/// Runs the function on an object.
pub fn run(function: impl FnOnce(&Request) -> Result<Answer, Error>, object: Value) -> Value {
    answer(function, &request(object))
}
