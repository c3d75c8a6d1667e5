# SPDX-License-Identifier: Apache-2.0
"""Handlers of reconciled in Python: docs/kits.md.

    from reconciled import Permanent, integer, reconcile, serve

    @reconcile
    def widget(request):
        size = integer(request["object"]["spec"].get("size"), "spec.size")
        if size < 0:
            raise Permanent("spec.size is negative")
        return {"status": {"size": size}}

    serve()

The same program is a handler for `exec` and for `serve`: a request with an id asks for one line and goes on, a request without
one is the only one. It answers one after the other; serve(parallel=N) runs the functions in N threads, for N different objects.
"""
import datetime
import json
import logging
import os
import re
import select
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from .types import Answer, Condition, Event, Object, Request

__all__ = ["Answer", "Condition", "Event", "Object", "Permanent", "Request", "Temporary", "answer", "deleted", "finalize",
           "integer", "reconcile", "schedule", "serve", "startup", "unselected"]

VERSION = 1  # of requests
EXIT_DATA = 65
MOST_PARALLEL = 128  # as in the configuration

_log = logging.getLogger("reconciled")
_functions = {}  # (action, watch or None): function


class Temporary(Exception):
    """This run has failed, and is tried again: after retry_after (text as "90s", seconds, or a timedelta), or else after the
    object's backoff. Any other exception has the same effect, and leaves a traceback in the log."""

    def __init__(self, message, retry_after=None):
        super().__init__(message)
        self.retry_after = None if retry_after is None else duration(retry_after)


class Permanent(Exception):
    """This run has failed, and so will each other one until the object or the handler changes."""


def integer(value, name):
    """The value, if it is an integer of 64 bits; else a permanent error with the name ("spec.size"). None is none."""
    if type(value) is not int or not -2**63 <= value < 2**63:  # True is an int for isinstance()
        raise Permanent(f"{name} is not an integer in range")
    return value


def duration(value):
    """Text as requeueAfter and retryAfter want it: of seconds, or of a timedelta. Text stays as it is."""
    if isinstance(value, str):
        if not re.fullmatch(r"(\d+(\.\d+)?(us|ms|s|m|h|d))+", value):
            raise ValueError(f"a delay is text like 30s or 1h30m, not {value!r}")
        return value
    seconds = value.total_seconds() if isinstance(value, datetime.timedelta) else value
    if seconds < 0:
        raise ValueError(f"a delay of {seconds} s is negative")
    return f"{round(seconds * 1000)}ms"


# --- which function serves a request


def _register(action, watch, function):
    if (action, watch) in _functions:
        raise ValueError(f"a second function for {action} of {'all watches' if watch is None else f'the watch {watch}'}: "
                         f"{function.__name__}")
    _functions[action, watch] = function
    return function


def _decorator(action, text):
    def decorate(target=None):
        if callable(target):
            return _register(action, None, target)
        return lambda function: _register(action, target, function)

    decorate.__name__ = decorate.__qualname__ = action
    decorate.__doc__ = f"@{action} or @{action}(\"WATCH\"): {text} With the name of a watch, for its objects only."
    return decorate


reconcile = _decorator("reconcile", "the function brings the world in line with the object.")
finalize = _decorator("finalize", "the function cleans up; the object goes when it has returned.")
deleted = _decorator("deleted", "the object is gone; for watches without a finalizer.")
unselected = _decorator("unselected", "the watch does not select the object any more.")


schedule = _decorator("schedule", "the time of a schedule has come, and the object is its ConfigMap. The name is that of the schedule.")
startup = _decorator("startup", "the operator has started, and all other handlers wait. The object is a ConfigMap of the operator's.")

# What nobody serves although the configuration asks for it: the work would be missed without a word.
_LACKING = {"reconcile": "no function that reconciles objects of the watch {0}: mark one with @reconcile",
            "schedule": "no function for the schedule {0}: mark one with @schedule(\"{0}\")",
            "startup": "no function for startup: mark one with @startup"}


def _find(request, functions):
    action, watch = request["action"], request.get("watch")
    function = functions.get((action, watch)) or functions.get((action, None))
    if function is None and action in _LACKING:
        raise Permanent("the handler has " + _LACKING[action].format(watch))
    return function


def _check_names(functions):
    """A name with a mistake would let objects go without their cleanup."""
    for action, watch in functions:
        if action in ("schedule", "startup"):
            continue
        if ("reconcile", watch) not in functions and ("reconcile", None) not in functions:
            raise ValueError(f"there is a function for {action} of the watch {watch}, and none that reconciles its objects")


# --- one request


def _run(request, functions):
    if request.get("version", VERSION) != VERSION:
        raise Permanent(f"the request has version {request['version']}, and this kit knows {VERSION}: use a newer kit")
    function = _find(request, functions)
    found = function(request) if function else None  # of an action that is not served, nothing is to be done
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise TypeError(f"{function.__name__}() returned {type(found).__name__}, and not a dict or None")
    return found


def _encode(value):
    if isinstance(value, datetime.timedelta):
        return duration(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone: a time of an answer is like datetime.now(timezone.utc)")
        return value.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    raise TypeError(f"an answer cannot have a {type(value).__name__}")


def _dump(found):
    return json.dumps(found, default=_encode, allow_nan=False)


def _text(error):
    try:
        return str(error)
    except Exception:  # of a class of the handler's own
        return "an exception without a text"


def answer(request, functions=None):
    """The answer to a request (a dict), as the operator gets it, without id. A failure is an answer as well."""
    try:
        return json.loads(_dump(_run(request, _functions if functions is None else functions)))
    except Permanent as failure:
        return {"error": _text(failure), "permanent": True}
    except Temporary as failure:
        return {"error": _text(failure), **({"retryAfter": failure.retry_after} if failure.retry_after else {})}
    except Exception as error:  # this run has failed; the next request is another one
        _log.exception("the handler has failed")
        return {"error": f"{type(error).__name__}: {_text(error)}"}


# --- the loop


class _Work(threading.local):
    """What a thread has in work."""
    key = ""  # of the object, as "namespace/name: "; "" in the main thread


_work = _Work()


class _LevelFirst(logging.Formatter):
    """Each line is a record of the operator's log, which has the object's fields already: its level is what is lacking. With threads
    the process may have several requests, and then the operator does not know the object either."""

    def format(self, record):
        head = f"{record.levelname.lower()}: {_work.key}"
        return "\n".join(head + line for line in super().format(record).splitlines())


def _configure_logging():
    """Only if the program has not done so itself."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LevelFirst())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def _take_streams():
    """(requests, descriptor of answers). From here on, what anybody prints goes to standard error, and a program that the handler
    starts reads no requests. A debugger may ask at the terminal, where `reconciledctl run --tty` has given us one."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    nothing = os.open("/dev/tty" if "RECONCILED_REQUEST" in os.environ else os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return requests, answers


def _write(descriptor, text):
    data = text.encode()
    while data:
        data = data[os.write(descriptor, data):]


# The operator writes the id first.
_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*(\d{1,18})\b')


def _parse(line):
    """The request, and None; or what there is of it, and the answer that it cannot be read. One that the operator allows may be
    too much for the module json: nested too deeply, or a number of too many digits. Others wait for the process, so it goes on."""
    try:
        request = json.loads(line)
        if isinstance(request, dict) and isinstance(request.get("action"), str):
            return request, None
        reason = "it is no object with an action"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    _log.critical("the request cannot be read: %s", reason)
    found = _ID.match(line)
    if not found:
        sys.exit(EXIT_DATA)
    return {"id": int(found[1])}, {"error": f"the request cannot be read: {reason}", "permanent": True}


def _key(request):
    try:
        metadata = request["object"]["metadata"]
        return "/".join(metadata[part] for part in ("namespace", "name") if part in metadata) + ": "
    except (KeyError, TypeError):
        return ""


class _Server:
    """SIGTERM ends the process: at once while it waits for a request, or else when the answers are written."""

    def __init__(self, parallel):
        self.parallel, self.has_warned = parallel, False
        self.requests, self.answers = _take_streams()
        self.lock = threading.Lock()  # of the count, and of standard output
        self.running = 0
        self.asked, self.status = False, 0
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_):
        self.asked = True
        if self.running == 0:
            sys.exit(self.status)

    def _begin(self):
        with self.lock:
            self.running += 1

    def _end(self):
        with self.lock:
            self.running -= 1
            return self.running == 0

    def _warn(self):
        """Else handler.parallel would have no effect, and nobody would know why."""
        if not self.has_warned and select.select([self.requests], [], [], 0)[0] and self.requests.peek(1):
            self.has_warned = True
            _log.warning("handler.parallel sends several requests at once, and serve() answers one after the other: use serve(parallel=N)")

    def _answer(self, request, refusal):
        found = refusal or answer(request)
        if "id" in request:  # and the first member: it tells whose answer is too long
            found = {"id": 0} | found | {"id": request["id"]}
            if self.parallel == 1:
                self._warn()
        text = _dump(found) + "\n"
        with self.lock:
            _write(self.answers, text)

    def _answer_in_thread(self, request, refusal):
        _work.key = _key(request)
        try:
            if not self.asked:
                self._answer(request, refusal)
        except (SystemExit, BrokenPipeError) as end:  # that is for the main thread, when the others have their answers
            self.asked, self.status = True, end.code if isinstance(end, SystemExit) else 0
        if self._end() and self.asked:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    def one_by_one(self):
        for line in self.requests:
            self._begin()
            request, refusal = _parse(line)
            try:
                self._answer(request, refusal)
            except BrokenPipeError:
                return
            self._end()
            if "id" not in request or self.asked:
                return

    def in_threads(self):
        with ThreadPoolExecutor(self.parallel) as pool:
            for line in self.requests:
                if self.asked:
                    return
                request, refusal = _parse(line)
                self._begin()
                pool.submit(self._answer_in_thread, request, refusal)
                if "id" not in request:
                    return


def serve(parallel=1):
    """Answers requests until there are no more; returns then. Call it once, at the end of the program.

    parallel  how many requests it answers at once, at most 128, where handler.parallel of the configuration sends as many. With 1,
              the functions run in the main thread; with more they run in threads, for different objects, and must be fit for that.
    """
    if not 1 <= parallel <= MOST_PARALLEL:
        raise ValueError(f"parallel is a number from 1 to {MOST_PARALLEL}, not {parallel}")
    _check_names(_functions)
    _configure_logging()
    server = _Server(parallel)
    if parallel == 1:
        server.one_by_one()
    else:
        server.in_threads()
