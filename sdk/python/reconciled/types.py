# SPDX-License-Identifier: Apache-2.0
"""Made by sdk/generate of schema/request.json and schema/answer.json: run it again instead of changing this file."""
from datetime import datetime, timedelta
from typing import Any, Literal, Required, TypedDict

Object = dict[str, Any]  # of Kubernetes: apiVersion, kind, metadata, and what its kind has


class Request(TypedDict, total=False):
    """What a handler gets on standard input: reconciled-handler(7). Keys may be added within a version."""
    id: int  # Of `serve` and `plugin` alone: the answer carries the same.
    version: Required[int]
    action: Required[Literal["reconcile", "finalize", "deleted", "unselected", "schedule", "startup"]]
    reason: Required[str]  # Why it runs now, for people.
    attempt: Required[int]
    lastError: Required[str]  # What the attempt before failed with; empty when there was none.
    watch: Required[str]
    epoch: int  # With several replicas alone: the epoch of the one that leads. It never goes down, and a later leader has a higher one.
    dryRun: bool  # True in a trial: change nothing but by the answer. Absent otherwise.
    children: list[Object]  # What the object owns, of the kinds that the watch `owns`.
    related: list[Object]  # What the object may depend on, of the kinds that the watch names as `related`.
    previous: dict[str, Any]  # With `previous: true`: the object as the handler was given it at its last success. Absent where that is not known.
    object: Required[Object]  # The newest version of the object that is known.


class Condition(TypedDict, total=False):
    """An entry of `conditions`."""
    type: Required[str]
    status: Required[Literal["True", "False", "Unknown"]]
    reason: str
    message: str


class Event(TypedDict, total=False):
    """An entry of `events`."""
    type: Literal["Normal", "Warning"]
    reason: Required[str]
    action: str
    note: str


class Metric(TypedDict, total=False):
    """An entry of `metrics`."""
    name: Required[str]
    action: Required[Literal["set", "add", "observe", "remove"]]  # set: a gauge; add: to a counter; observe: in a histogram; remove: the series with these labels goes.
    value: float  # Of `add` and `observe` not negative; `remove` needs none.
    labels: dict[str, Any]
    buckets: list[float]  # Of `observe`: upper bounds. Without: those of durations in seconds, up to 10.


class Answer(TypedDict, total=False):
    """What a handler may say on standard output: reconciled-handler(7). null is the same as an absent key."""
    status: dict[str, Any]  # Merged into the object's status (RFC 7386).
    conditions: list[Condition]  # Merged into status.conditions by type; lastTransitionTime and observedGeneration are set by reconciled.
    events: list[Event]  # Events about the object, written after everything else has succeeded.
    metrics: list[Metric]  # Metrics of the handler, which the operator shows beside its own, with the label `watch`.
    patch: dict[str, Any]  # Merged into the object (RFC 7386), if it is still the version that the handler was given.
    children: list[Object]  # Objects that shall be there, applied and owned; what is left out is deleted. Absent: they stay.
    patches: list[Object]  # Fields of objects of others, applied without force; what is left out is given up. Absent: they stay.
    requeueAfter: str | timedelta  # Run again after it, at the latest.
    requeueAt: str | datetime  # Run again at this time, with its zone (RFC 3339), at the latest; one that has passed is a second away.
    message: str  # For people.
    error: str  # The handler has failed: status, conditions and events are written, and nothing else is carried out.
    retryAfter: str | timedelta  # Beside error: the next attempt, in the place of the backoff.
    permanent: bool  # Beside error: until the object changes.
    fatal: bool  # Beside error: the operator is to end, where its watch has allowFatal.
    done: bool  # false, to finalize: the cleanup goes on, and the object is not released.
