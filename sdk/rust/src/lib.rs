// SPDX-License-Identifier: Apache-2.0
//! Handlers of reconciled, the supervisor of Kubernetes operators, in Rust: docs/kits.md.
//!
//! ```no_run
//! use reconciled::{json, Answer, Error, Handler, Request};
//!
//! fn widget(request: &Request) -> Result<Answer, Error> {
//!     let size = request.object.get("spec").get("size").integer("spec.size")?;
//!     if size < 0 {
//!         return Err(Error::permanent("spec.size is negative"));
//!     }
//!     Ok(Answer { status: Some(json!({"size": size})), ..Answer::default() })
//! }
//!
//! fn main() {
//!     Handler::new(widget).serve();
//! }
//! ```
//!
//! The same program is a handler for `exec` and for `serve`: a request with an id asks for one line and goes on, a request
//! without one is the only one. With `handler.parallel` in the configuration, the functions run in several threads, for different
//! objects.

mod json;
mod serve;
pub mod testing;
#[rustfmt::skip]
mod types;

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

pub use json::{Map, Value};
pub use types::{Answer, Condition, Event, Metric, Request};

const REQUEST_VERSION: i64 = 1;

// ---- errors

/// Why a run has failed. Any other error becomes a temporary one: `?` does that.
#[derive(Clone, Debug)]
pub struct Error {
    message: String,
    permanent: bool,
    retry_after: Option<Duration>,
    answer: Option<Box<Answer>>,
}

impl Error {
    /// The run is tried again, after the object's backoff.
    pub fn temporary(message: impl Display) -> Error {
        Error { message: message.to_string(), permanent: false, retry_after: None, answer: None }
    }

    /// The run is tried again after this time.
    pub fn temporary_after(retry_after: Duration, message: impl Display) -> Error {
        Error { retry_after: Some(retry_after), ..Error::temporary(message) }
    }

    /// Each other run will fail as well, until the object or the handler changes.
    pub fn permanent(message: impl Display) -> Error {
        Error { permanent: true, ..Error::temporary(message) }
    }

    /// Status, conditions and events of this answer are written beside the error.
    pub fn with(self, answer: Answer) -> Error {
        Error { answer: Some(Box::new(answer)), ..self }
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Error {
        Error::temporary(error)
    }
}

impl From<Error> for Answer {
    fn from(error: Error) -> Answer {
        let beside = error.answer.map_or_else(Answer::default, |answer| *answer);
        Answer {
            status: beside.status,
            conditions: beside.conditions,
            events: beside.events,
            error: Some(error.message),
            permanent: Some(true).filter(|_| error.permanent),
            retry_after: error.retry_after,
            ..Answer::default()
        }
    }
}

// ---- logging: each line is a record of the operator's log, which has the object's fields already, unless the process has several
// requests: then the kit writes the object's key

static SEVERAL: AtomicBool = AtomicBool::new(false); // it has had several requests at once

thread_local! {
    static KEY: RefCell<String> = RefCell::new(String::new()); // of the object in work, as "namespace/name: "
}

fn key_of(request: &Request) -> String {
    let metadata = request.object.get("metadata");
    let name = metadata.get("name").as_str().unwrap_or_default();
    match metadata.get("namespace").as_str() {
        Some(namespace) => format!("{}/{}: ", namespace, name),
        None => format!("{}: ", name),
    }
}

#[doc(hidden)]
pub fn log_lines(level: &str, text: &str) {
    use std::io::Write;
    let key = if SEVERAL.load(SeqCst) { KEY.with(|key| key.borrow().clone()) } else { String::new() };
    let lines: String = text.lines().map(|line| format!("{}: {}{}\n", level, key, line)).collect();
    let _ = std::io::stderr().write_all(lines.as_bytes()); // otherwise there is nobody to tell
}

/// Writes to the operator's log, as `println!` writes.
#[macro_export]
macro_rules! info { ($($values:tt)*) => { $crate::log_lines("info", &format!($($values)*)) }; }

/// Writes to the operator's log, as `println!` writes.
#[macro_export]
macro_rules! warning { ($($values:tt)*) => { $crate::log_lines("warning", &format!($($values)*)) }; }

/// Writes to the operator's log, as `println!` writes.
#[macro_export]
macro_rules! error { ($($values:tt)*) => { $crate::log_lines("error", &format!($($values)*)) }; }

// ---- one request

type Function<'a> = Box<dyn Fn(&Request) -> Result<Answer, Error> + Sync + 'a>;

fn text_of_panic(cause: &(dyn Any + Send)) -> &str {
    cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("?")
}

/// The text may be of an object: it makes no line of its own.
fn one_line(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { each.escape_default().to_string() } else { each.to_string() }).collect()
}

/// What panics is an error of this request alone.
fn guard<T>(request: &Request, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let before = KEY.with(|key| key.replace(key_of(request)));
    let found = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        let text = text_of_panic(cause.as_ref());
        error!("the handler has failed: panic: {}", one_line(text)); // where, is in what the panic itself has said
        Err(Error::temporary(format!("panic: {}", text)))
    });
    KEY.with(|key| key.replace(before));
    found
}

/// A value of JSON, which an answer with a number that is none cannot become.
fn value_of(request: &Request, work: impl FnOnce() -> Answer) -> Value {
    guard(request, || Ok(Value::from(work()))).unwrap_or_else(|error| Answer::from(error).into())
}

/// A function for each action. `finalize`, `deleted` and `unselected` change nothing without one. Begin with `Handler::new`, or
/// with `Handler::default` where there are only schedules and start-up.
#[derive(Default)]
pub struct Handler<'a> {
    functions: Vec<(&'static str, String, Function<'a>)>, // action, name of the schedule, and what serves it
}

/// What nobody serves although the configuration asks for it is an error: the work would be missed without a word.
fn answer_of_nobody(request: &Request) -> Result<Answer, Error> {
    let lacking = match (request.action.as_str(), &request.watch) {
        ("reconcile", watch) => format!("no function that reconciles objects of the watch {}: Handler::new(...)", watch),
        ("schedule", name) => format!("no function for the schedule {}: Handler::schedule(\"{}\", ...)", name, name),
        ("startup", _) => "no function for startup: Handler::startup(...)".to_string(),
        _ => return Ok(Answer::default()),
    };
    Err(Error::permanent(format!("the handler has {}", lacking)))
}

impl<'a> Handler<'a> {
    /// The function brings the world in line with the object.
    pub fn new(reconcile: impl Fn(&Request) -> Result<Answer, Error> + Sync + 'a) -> Handler<'a> {
        Handler::default().on("reconcile", "", reconcile)
    }

    /// The function cleans up; the object goes when it has returned.
    pub fn finalize(self, function: impl Fn(&Request) -> Result<Answer, Error> + Sync + 'a) -> Handler<'a> {
        self.on("finalize", "", function)
    }

    /// The object is gone; for watches without a finalizer.
    pub fn deleted(self, function: impl Fn(&Request) -> Result<Answer, Error> + Sync + 'a) -> Handler<'a> {
        self.on("deleted", "", function)
    }

    /// The watch does not select the object any more.
    pub fn unselected(self, function: impl Fn(&Request) -> Result<Answer, Error> + Sync + 'a) -> Handler<'a> {
        self.on("unselected", "", function)
    }

    /// The time of this schedule has come, and the object is its ConfigMap.
    pub fn schedule(self, name: &str, function: impl Fn(&Request) -> Result<Answer, Error> + Sync + 'a) -> Handler<'a> {
        self.on("schedule", name, function)
    }

    /// The operator has started, and all other handlers wait. The object is a ConfigMap of the operator's.
    pub fn startup(self, function: impl Fn(&Request) -> Result<Answer, Error> + Sync + 'a) -> Handler<'a> {
        self.on("startup", "", function)
    }

    fn on(
        mut self,
        action: &'static str,
        schedule: &str,
        function: impl Fn(&Request) -> Result<Answer, Error> + Sync + 'a,
    ) -> Handler<'a> {
        self.functions.push((action, schedule.to_string(), Box::new(function)));
        self
    }

    fn has(&self, action: &str) -> bool {
        self.functions.iter().any(|(each, ..)| *each == action)
    }

    fn run(&self, request: &Request) -> Result<Answer, Error> {
        if request.version != REQUEST_VERSION {
            return Err(Error::permanent(format!(
                "the request has version {}, and this kit knows {}: use a newer kit",
                request.version, REQUEST_VERSION
            )));
        }
        let schedule = if request.action == "schedule" { request.watch.as_str() } else { "" };
        let found = self.functions.iter().find(|(action, name, _)| *action == request.action && name == schedule);
        match found {
            Some((.., function)) => guard(request, || function(request)),
            None => answer_of_nobody(request),
        }
    }

    /// The answer to a request as the operator gets it, without id. A failure is an answer as well.
    pub fn answer(&self, request: &Request) -> Answer {
        self.run(request).unwrap_or_else(Answer::from)
    }

    /// Answers requests until there are no more; then the process ends. Call it once. What anybody prints to standard
    /// output from here on goes to standard error, and standard input is empty.
    pub fn serve(self) -> ! {
        let of_watches = ["finalize", "deleted", "unselected"].iter().any(|action| self.has(action));
        let without_watch = !of_watches && (self.has("startup") || self.has("schedule"));
        assert!(self.has("reconcile") || without_watch, "the handler lacks the function reconcile");
        serve::serve(&self)
    }
}
