// SPDX-License-Identifier: Apache-2.0
//! Made by sdk/generate of schema/request.json and schema/answer.json: run it again instead of changing this file.

use std::time::{Duration, SystemTime};

use crate::json::{put, Map, Value};

/// What a handler gets on standard input: reconciled-handler(7). Keys may be added within a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Of `serve` and `plugin` alone: the answer carries the same.
    pub id: Option<i64>,
    pub version: i64,
    /// One of reconcile, finalize, deleted, unselected, schedule, startup.
    pub action: String,
    /// Why it runs now, for people.
    pub reason: String,
    pub attempt: i64,
    /// What the attempt before failed with; empty when there was none.
    pub last_error: String,
    pub watch: String,
    /// With several replicas alone: the epoch of the one that leads. It never goes down, and a later leader has a higher one.
    pub epoch: Option<i64>,
    /// True in a trial: change nothing but by the answer. Absent otherwise.
    pub dry_run: Option<bool>,
    /// What the object owns, of the kinds that the watch `owns`.
    pub children: Vec<Value>,
    /// What the object may depend on, of the kinds that the watch names as `related`.
    pub related: Vec<Value>,
    /// With `previous: true`: the object as the handler was given it at its last success. Absent where that is not known.
    pub previous: Option<Value>,
    /// The newest version of the object that is known.
    pub object: Value,
}

impl From<&Value> for Request {
    fn from(value: &Value) -> Request {
        Request {
            id: value.get("id").as_i64(),
            version: value.get("version").as_i64().unwrap_or(1),
            action: value.get("action").as_str().unwrap_or_default().to_string(),
            reason: value.get("reason").as_str().unwrap_or_default().to_string(),
            attempt: value.get("attempt").as_i64().unwrap_or(1),
            last_error: value.get("lastError").as_str().unwrap_or_default().to_string(),
            watch: value.get("watch").as_str().unwrap_or_default().to_string(),
            epoch: value.get("epoch").as_i64(),
            dry_run: value.get("dryRun").as_bool(),
            children: value.get("children").as_list().to_vec(),
            related: value.get("related").as_list().to_vec(),
            previous: Some(value.get("previous").clone()).filter(|value| !value.is_null()),
            object: value.get("object").clone(),
        }
    }
}

/// An entry of `conditions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    pub r#type: String,
    /// One of True, False, Unknown.
    pub status: String,
    pub reason: Option<String>,
    pub message: Option<String>,
}

impl From<Condition> for Value {
    fn from(value: Condition) -> Value {
        let mut map = Map::new();
        put(&mut map, "type", Some(value.r#type));
        put(&mut map, "status", Some(value.status));
        put(&mut map, "reason", value.reason);
        put(&mut map, "message", value.message);
        Value::Object(map)
    }
}

/// An entry of `events`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// One of Normal, Warning.
    pub r#type: Option<String>,
    pub reason: String,
    pub action: Option<String>,
    pub note: Option<String>,
}

impl From<Event> for Value {
    fn from(value: Event) -> Value {
        let mut map = Map::new();
        put(&mut map, "type", value.r#type);
        put(&mut map, "reason", Some(value.reason));
        put(&mut map, "action", value.action);
        put(&mut map, "note", value.note);
        Value::Object(map)
    }
}

/// An entry of `metrics`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metric {
    pub name: String,
    /// set: a gauge; add: to a counter; observe: in a histogram; remove: the series with these labels goes. One of set, add, observe, remove.
    pub action: String,
    /// Of `add` and `observe` not negative; `remove` needs none.
    pub value: Option<f64>,
    pub labels: Option<Value>,
    /// Of `observe`: upper bounds. Without: those of durations in seconds, up to 10.
    pub buckets: Option<Vec<f64>>,
}

impl From<Metric> for Value {
    fn from(value: Metric) -> Value {
        let mut map = Map::new();
        put(&mut map, "name", Some(value.name));
        put(&mut map, "action", Some(value.action));
        put(&mut map, "value", value.value);
        put(&mut map, "labels", value.labels);
        put(&mut map, "buckets", value.buckets);
        Value::Object(map)
    }
}

/// What a handler may say on standard output: reconciled-handler(7). null is the same as an absent key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Merged into the object's status (RFC 7386).
    pub status: Option<Value>,
    /// Merged into status.conditions by type; lastTransitionTime and observedGeneration are set by reconciled.
    pub conditions: Vec<Condition>,
    /// Events about the object, written after everything else has succeeded.
    pub events: Vec<Event>,
    /// Metrics of the handler, which the operator shows beside its own, with the label `watch`.
    pub metrics: Vec<Metric>,
    /// Merged into the object (RFC 7386), if it is still the version that the handler was given.
    pub patch: Option<Value>,
    /// Objects that shall be there, applied and owned; what is left out is deleted. Absent: they stay.
    pub children: Option<Vec<Value>>,
    /// Fields of objects of others, applied without force; what is left out is given up. Absent: they stay.
    pub patches: Option<Vec<Value>>,
    /// Run again after it, at the latest.
    pub requeue_after: Option<Duration>,
    /// Run again at this time, with its zone (RFC 3339), at the latest; one that has passed is a second away.
    pub requeue_at: Option<SystemTime>,
    /// For people.
    pub message: Option<String>,
    /// The handler has failed: status, conditions and events are written, and nothing else is carried out.
    pub error: Option<String>,
    /// Beside error: the next attempt, in the place of the backoff.
    pub retry_after: Option<Duration>,
    /// Beside error: until the object changes.
    pub permanent: Option<bool>,
    /// Beside error: the operator is to end, where its watch has allowFatal.
    pub fatal: Option<bool>,
    /// false, to finalize: the cleanup goes on, and the object is not released.
    pub done: Option<bool>,
}

impl From<Answer> for Value {
    fn from(value: Answer) -> Value {
        let mut map = Map::new();
        put(&mut map, "status", value.status);
        put(&mut map, "conditions", Some(value.conditions).filter(|list| !list.is_empty()));
        put(&mut map, "events", Some(value.events).filter(|list| !list.is_empty()));
        put(&mut map, "metrics", Some(value.metrics).filter(|list| !list.is_empty()));
        put(&mut map, "patch", value.patch);
        put(&mut map, "children", value.children);
        put(&mut map, "patches", value.patches);
        put(&mut map, "requeueAfter", value.requeue_after);
        put(&mut map, "requeueAt", value.requeue_at);
        put(&mut map, "message", value.message);
        put(&mut map, "error", value.error);
        put(&mut map, "retryAfter", value.retry_after);
        put(&mut map, "permanent", value.permanent);
        put(&mut map, "fatal", value.fatal);
        put(&mut map, "done", value.done);
        Value::Object(map)
    }
}
