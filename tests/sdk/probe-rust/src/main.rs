// SPDX-License-Identifier: Apache-2.0
//! The probe in Rust: README.md.

use std::process::Command;
use std::time::{Duration, SystemTime};

use reconciled::{error, info, json, warning, Answer, Condition, Error, Event, Handler, Metric, Request, Value};

fn say(text: impl Into<String>) -> Answer {
    Answer { message: Some(text.into()), ..Answer::default() }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn conditions() -> Answer {
    let condition = Condition {
        r#type: "Ready".to_string(),
        status: "True".to_string(),
        reason: Some("Up".to_string()),
        message: Some("it is up".to_string()),
    };
    let event = Event {
        r#type: Some("Warning".to_string()),
        reason: "Slow".to_string(),
        note: Some("it took long".to_string()),
        ..Event::default()
    };
    Answer { conditions: vec![condition], events: vec![event], ..Answer::default() }
}

fn children(request: &Request) -> Answer {
    let name = request.object.get("metadata").get("name");
    let shown: Vec<String> = request.children.iter().map(|child| text_of(child.get("metadata").get("name"))).collect();
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                       "data": {"shown": (shown.join(" "))}});
    Answer { children: Some(vec![child]), ..Answer::default() }
}

fn status(request: &Request) -> Answer {
    let (name, size) = (request.object.get("metadata").get("name"), request.object.get("spec").get("size"));
    Answer {
        status: Some(json!({"name": name, "size": (size.as_i64())})),
        requeue_after: Some(Duration::from_secs(300)),
        ..Answer::default()
    }
}

fn metrics(request: &Request) -> Answer {
    let calls = Metric {
        name: "probe_calls".to_string(),
        action: "add".to_string(),
        value: Some(1.5),
        labels: Some(json!({"name": (request.object.get("metadata").get("name"))})),
        ..Metric::default()
    };
    let seconds = Metric {
        name: "probe_seconds".to_string(),
        action: "observe".to_string(),
        value: Some(0.0),
        buckets: Some(vec![0.5, 2.0]),
        ..Metric::default()
    };
    Answer { metrics: vec![calls, seconds], ..Answer::default() }
}

fn reconcile(request: &Request) -> Result<Answer, Error> {
    let spec = request.object.get("spec");
    Ok(match spec.get("do").as_str().unwrap_or_default() {
        "status" => status(request),
        "metrics" => metrics(request),
        "at" => Answer {
            requeue_at: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(2_087_866_800_125)),
            ..Answer::default()
        },
        "children" => children(request),
        "childless" => Answer { children: Some(vec![]), ..Answer::default() },
        "conditions" => conditions(),
        "print" => {
            println!("to standard output");
            say("printed")
        }
        "log" => {
            info!("one");
            warning!("two\nthree");
            error!("{}", "four");
            Answer::default()
        }
        "temporary" => return Err(Error::temporary_after(Duration::from_secs(90), "the service is away")),
        "backoff" => Err(std::io::Error::new(std::io::ErrorKind::Other, "the service is away"))?,
        "permanent" => return Err(Error::permanent("spec.size is negative")),
        "half" => {
            let beside = Answer { status: Some(json!({"half": true})), children: Some(vec![]), ..Answer::default() };
            return Err(Error::temporary("half of it").with(beside));
        }
        "crash" => panic!("{} on purpose", "broken"),
        "text" => say(text_of(spec.get("text"))),
        "attempt" => say(format!(
            "{}: attempt {} of {}, {} after: {}",
            text_of(spec.get("prefix")),
            request.attempt,
            request.watch,
            request.reason,
            request.last_error
        )),
        "wait" | "held" => {
            info!("it waits");
            say(std::fs::read_to_string(text_of(spec.get("fifo")))?)
        }
        // what only this language has
        "echo" => {
            let mut copy = spec.get("value").clone();
            if let Value::Object(map) = &mut copy {
                map.insert("more".to_string(), json!([(-7), 0.5, false, null, "'"]));
            }
            Answer { status: Some(copy), ..Answer::default() }
        }
        "program" => {
            Command::new("sh").args(["-c", "cat; echo of a program"]).status()?;
            Answer::default()
        }
        "infinite" => Answer { status: Some(json!({ "size": (f64::INFINITY) })), ..Answer::default() },
        "infinite-metric" => {
            Answer { metrics: vec![Metric { value: Some(f64::NAN), ..Metric::default() }], ..Answer::default() }
        }
        "panic" => panic!("{}", text_of(spec.get("text"))),
        _ => Answer::default(),
    })
}

fn finalize(_: &Request) -> Result<Answer, Error> {
    Ok(Answer { done: Some(false), requeue_after: Some(Duration::from_secs(5)), ..Answer::default() })
}

fn nightly(request: &Request) -> Result<Answer, Error> {
    Ok(say(format!("{} of {}", request.watch, text_of(request.object.get("metadata").get("name")))))
}

fn prepare(request: &Request) -> Result<Answer, Error> {
    let watch = &request.watch;
    Ok(Answer { patch: Some(json!({"data": {"prepared": watch}})), ..Answer::default() })
}

fn main() {
    let all = std::env::args().len() == 1;
    let handler = if all { Handler::new(reconcile).finalize(finalize).startup(prepare) } else { Handler::default() };
    handler.schedule("nightly", nightly).serve();
}
