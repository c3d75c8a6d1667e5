// SPDX-License-Identifier: Apache-2.0
import { Answer, Request } from './types';

export * from './types';

export type Result = Answer | void | null;
export type HandlerFunction = (request: Request) => Result | Promise<Result>;

export interface Handlers {
  /** Must be there, unless there are only schedules and startup. */
  reconcile?: HandlerFunction;
  finalize?: HandlerFunction;
  deleted?: HandlerFunction;
  unselected?: HandlerFunction;
  /** The operator has started, and all other handlers wait. The object is a ConfigMap of the operator's. */
  startup?: HandlerFunction;
  /** By the name of the schedule: its time has come, and the object is its ConfigMap. */
  schedules?: Record<string, HandlerFunction>;
}

/** This run has failed, and is tried again: after retryAfter (text as '90s', or milliseconds), or else after the object's backoff. */
export class Temporary extends Error {
  constructor(message: string, options?: { retryAfter?: string | number; cause?: unknown });
  readonly retryAfter?: string;
}

/** This run has failed, and so will each other one until the object or the handler changes. */
export class Permanent extends Error {
  constructor(message: string, options?: { cause?: unknown });
}

/** The value, if it is an integer up to 2^53; else throws a permanent error with the name ('spec.size'). */
export function integer(value: unknown, name: string): number;

/** Lines of the operator's log, which adds the object's fields; its key is in the line, if the process has had several requests at once. */
export const log: Record<'info' | 'warning' | 'error', (...values: unknown[]) => void>;

/** The answer to a request, as the operator gets it, without id. A failure is an answer as well. */
export function answer(request: Request, handlers: Handlers): Promise<Answer>;

/** Answers requests until there are no more; then the process ends. Call it once. */
export function serve(handlers: Handlers): void;
