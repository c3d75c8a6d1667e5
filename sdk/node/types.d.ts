// SPDX-License-Identifier: Apache-2.0
// Made by sdk/generate of schema/request.json and schema/answer.json: run it again instead of changing this file.

export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid?: string; [key: string]: any };
  [key: string]: any;
}

/** What a handler gets on standard input: reconciled-handler(7). Keys may be added within a version. */
export interface Request {
  /** Of `serve` and `plugin` alone: the answer carries the same. */
  id?: number;
  version: number;
  action: "reconcile" | "finalize" | "deleted" | "unselected" | "schedule" | "startup";
  /** Why it runs now, for people. */
  reason: string;
  attempt: number;
  /** What the attempt before failed with; empty when there was none. */
  lastError: string;
  watch: string;
  /** With several replicas alone: the epoch of the one that leads. It never goes down, and a later leader has a higher one. */
  epoch?: number;
  /** True in a trial: change nothing but by the answer. Absent otherwise. */
  dryRun?: boolean;
  /** What the object owns, of the kinds that the watch `owns`. */
  children?: KubernetesObject[];
  /** What the object may depend on, of the kinds that the watch names as `related`. */
  related?: KubernetesObject[];
  /** With `previous: true`: the object as the handler was given it at its last success. Absent where that is not known. */
  previous?: Record<string, any>;
  /** The newest version of the object that is known. */
  object: KubernetesObject;
}

/** An entry of `conditions`. */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason?: string;
  message?: string;
}

/** An entry of `events`. */
export interface Event {
  type?: "Normal" | "Warning";
  reason: string;
  action?: string;
  note?: string;
}

/** An entry of `metrics`. */
export interface Metric {
  name: string;
  /** set: a gauge; add: to a counter; observe: in a histogram; remove: the series with these labels goes. */
  action: "set" | "add" | "observe" | "remove";
  /** Of `add` and `observe` not negative; `remove` needs none. */
  value?: number;
  labels?: Record<string, any>;
  /** Of `observe`: upper bounds. Without: those of durations in seconds, up to 10. */
  buckets?: number[];
}

/** What a handler may say on standard output: reconciled-handler(7). null is the same as an absent key. */
export interface Answer {
  /** Merged into the object's status (RFC 7386). */
  status?: Record<string, any>;
  /** Merged into status.conditions by type; lastTransitionTime and observedGeneration are set by reconciled. */
  conditions?: Condition[];
  /** Events about the object, written after everything else has succeeded. */
  events?: Event[];
  /** Metrics of the handler, which the operator shows beside its own, with the label `watch`. */
  metrics?: Metric[];
  /** Merged into the object (RFC 7386), if it is still the version that the handler was given. */
  patch?: Record<string, any>;
  /** Objects that shall be there, applied and owned; what is left out is deleted. Absent: they stay. */
  children?: KubernetesObject[];
  /** Fields of objects of others, applied without force; what is left out is given up. Absent: they stay. */
  patches?: KubernetesObject[];
  /** Run again after it, at the latest. */
  requeueAfter?: string;
  /** Run again at this time, with its zone (RFC 3339), at the latest; one that has passed is a second away. */
  requeueAt?: string | Date;
  /** For people. */
  message?: string;
  /** The handler has failed: status, conditions and events are written, and nothing else is carried out. */
  error?: string;
  /** Beside error: the next attempt, in the place of the backoff. */
  retryAfter?: string;
  /** Beside error: until the object changes. */
  permanent?: boolean;
  /** Beside error: the operator is to end, where its watch has allowFatal. */
  fatal?: boolean;
  /** false, to finalize: the cleanup goes on, and the object is not released. */
  done?: boolean;
}
