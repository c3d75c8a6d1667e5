// SPDX-License-Identifier: Apache-2.0
//! The loop.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::io::{AsFd, AsRawFd, RawFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::Mutex;
use std::thread::{Builder, Scope};

use crate::{one_line, text_of_panic, value_of, Handler, Map, Request, Value, SEVERAL};

const EXIT_DATA: i32 = 65;
const EXIT_SOFTWARE: i32 = 70;
const SIGTERM: i32 = 15;
const MOST_THREADS: usize = 128; // of handler.parallel
const STACK: usize = 8 << 20; // as the first thread has it: a request may be nested deeply

static IN_WORK: AtomicUsize = AtomicUsize::new(0); // requests whose answers are not written yet
static UNANSWERED: AtomicUsize = AtomicUsize::new(0); // and not begun to be written: the next one may come before that is over
static ASKED: AtomicBool = AtomicBool::new(false);

// What the standard library has no name for, and what it is linked with anyway.
extern "C" {
    fn dup2(from: RawFd, to: RawFd) -> RawFd;
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn _exit(status: i32) -> !;
}

/// SIGTERM: at once while it waits for a request, or else when the answers are written.
extern "C" fn stop(_: i32) {
    ASKED.store(true, SeqCst);
    if IN_WORK.load(SeqCst) == 0 {
        unsafe { _exit(0) }
    }
}

fn replace(descriptor: RawFd, with: RawFd) -> io::Result<()> {
    if unsafe { dup2(with, descriptor) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Standard input and output become the kit's own: what the handler prints, and programs that it starts, do not disturb the
/// protocol.
fn take_streams() -> io::Result<(BufReader<File>, File)> {
    let requests = io::stdin().as_fd().try_clone_to_owned()?;
    let answers = io::stdout().as_fd().try_clone_to_owned()?;
    replace(0, File::open("/dev/null")?.as_raw_fd())?;
    replace(1, 2)?;
    Ok((BufReader::new(requests.into()), answers.into()))
}

fn parse(line: Vec<u8>) -> Result<Request, String> {
    let text = String::from_utf8(line).map_err(|error| error.to_string())?;
    let whole = Value::parse(&text)?;
    if whole.get("action").as_str().is_none() {
        return Err("it is no object with an action".to_string());
    }
    Ok(Request::from(&whole))
}

/// The operator writes the id first.
fn id_of(line: &[u8]) -> Option<i64> {
    let head = String::from_utf8_lossy(&line[..line.len().min(64)]);
    let mut rest: &str = &head;
    for part in ["{", "\"id\"", ":"] {
        rest = rest.trim_start().strip_prefix(part)?;
    }
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Others wait for the process, so one request that cannot be read (nested too deeply, say) does not end it.
fn refuse(id: Option<i64>, why: &str) -> Value {
    crate::error!("the request cannot be read: {}", why);
    if id.is_none() {
        exit(EXIT_DATA);
    }
    let error = format!("the request cannot be read: {}", why);
    crate::json!({"error": error, "permanent": true})
}

/// The id comes first: it tells whose answer is too long.
fn with_id(answer: &Map, id: i64) -> String {
    let comma = if answer.is_empty() { "" } else { "," };
    format!("{{\"id\":{}{}{}\n", id, comma, &Value::Object(answer.clone()).to_string()[1..])
}

fn serve_one(handler: &Handler, line: Vec<u8>, answers: &Mutex<File>) {
    let first_id = id_of(&line);
    let (id, answer) = match parse(line) {
        Ok(request) => (request.id, value_of(&request, || handler.answer(&request))),
        Err(why) => (first_id, refuse(first_id, &why)),
    };
    let text = match (&answer, id) {
        (Value::Object(map), Some(id)) => with_id(map, id),
        _ => format!("{}\n", answer),
    };
    UNANSWERED.fetch_sub(1, SeqCst);
    if answers.lock().unwrap().write_all(text.as_bytes()).is_err() || id.is_none() {
        exit(0); // nobody reads answers any more, or there was one only
    }
}

struct Shared<'a> {
    handler: &'a Handler<'a>,
    requests: Mutex<BufReader<File>>,
    answers: Mutex<File>,
    threads: AtomicUsize,
    waiting: AtomicUsize, // of them, for a request
}

/// None: there are no more.
fn read_line(requests: &Mutex<BufReader<File>>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    if let Err(why) = requests.lock().unwrap().read_until(b'\n', &mut line) {
        crate::error!("standard input cannot be read: {}", why);
        exit(1);
    }
    Some(line).filter(|line| !line.is_empty())
}

/// What each thread does. While it works, another one waits for the next request.
fn work<'scope, 'a>(scope: &'scope Scope<'scope, '_>, shared: &'scope Shared<'a>) {
    while let Some(line) = read_line(&shared.requests) {
        if ASKED.load(SeqCst) {
            return;
        }
        IN_WORK.fetch_add(1, SeqCst);
        if UNANSWERED.fetch_add(1, SeqCst) > 0 {
            SEVERAL.store(true, SeqCst);
        }
        let waits = shared.waiting.fetch_sub(1, SeqCst) > 1;
        if !waits && shared.threads.load(SeqCst) < MOST_THREADS {
            shared.waiting.fetch_add(1, SeqCst);
            shared.threads.fetch_add(1, SeqCst);
            if Builder::new().stack_size(STACK).spawn_scoped(scope, || work(scope, shared)).is_err() {
                shared.waiting.fetch_sub(1, SeqCst); // the next request waits for one of those that there are
                shared.threads.fetch_sub(1, SeqCst);
            }
        }
        if catch_unwind(AssertUnwindSafe(|| serve_one(shared.handler, line, &shared.answers))).is_err() {
            exit(EXIT_SOFTWARE); // its request would never be answered; the operator starts another process
        }
        if IN_WORK.fetch_sub(1, SeqCst) == 1 && ASKED.load(SeqCst) {
            exit(0);
        }
        shared.waiting.fetch_add(1, SeqCst);
    }
}

pub fn serve(handler: &Handler) -> ! {
    let (requests, answers) = take_streams().unwrap_or_else(|why| {
        crate::error!("standard input and output cannot be taken: {}", why);
        exit(1)
    });
    unsafe { signal(SIGTERM, stop) };
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _whole = io::stderr().lock(); // no line of another request in between
        let place = panic.location().map_or_else(String::new, |place| format!(" at {}", place));
        crate::error!("panic{}: {}", place, one_line(text_of_panic(panic.payload())));
        if std::env::var_os("RUST_BACKTRACE").map_or(false, |wanted| wanted != "0") {
            before(panic); // with the text as it is
        }
    }));
    let shared = Shared {
        handler,
        requests: Mutex::new(requests),
        answers: Mutex::new(answers),
        threads: AtomicUsize::new(1),
        waiting: AtomicUsize::new(1),
    };
    std::thread::scope(|scope| work(scope, &shared));
    exit(0)
}
