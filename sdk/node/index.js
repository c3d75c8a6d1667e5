// SPDX-License-Identifier: Apache-2.0
// Handlers of reconciled in JavaScript: docs/kits.md.
//
//     const { serve, Permanent } = require('reconciled');
//
//     serve({
//       async reconcile(request) {
//         const { size } = request.object.spec;
//         if (size < 0) throw new Permanent('spec.size is negative');
//         return { status: { size } };
//       },
//     });
//
// The same program is a handler for `exec` and for `serve`: a request with an id asks for one line and goes on, a request
// without one is the only one. With `handler.parallel` in the configuration, async functions run at the same time, for different
// objects.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const { format } = require('node:util');

const VERSION = 1; // of requests
const EXIT_DATA = 65;
const ACTIONS = ['reconcile', 'finalize', 'deleted', 'unselected', 'startup']; // and `schedules`, by their names

/** This run has failed, and is tried again: after retryAfter (text as '90s', or milliseconds), or else after the object's
 * backoff. Any other error has the same effect, and leaves its stack in the log. */
class Temporary extends Error {
  constructor(message, { retryAfter, ...options } = {}) {
    super(message, options);
    this.name = 'Temporary';
    this.retryAfter = typeof retryAfter === 'number' ? `${Math.round(retryAfter)}ms` : retryAfter;
  }
}

/** This run has failed, and so will each other one until the object or the handler changes. */
class Permanent extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'Permanent';
  }
}

/** The value, if it is an integer that a number holds exactly; else a permanent error with the name ('spec.size'). */
function integer(value, name) {
  if (!Number.isSafeInteger(value)) throw new Permanent(`${name} is not an integer in range`);
  return value;
}

// --- logging: each line is a record of the operator's log, which has the object's fields already, unless the process has several
// requests: then the kit writes the object's key

const current = new AsyncLocalStorage(); // the request of the code that runs
let several = false; // it has had several requests at once

function logAt(level) {
  return (...values) => {
    const { namespace, name } = current.getStore()?.object?.metadata ?? {};
    const about = several && name !== undefined ? `${namespace === undefined ? '' : `${namespace}/`}${name}: ` : '';
    const lines = format(...values).split('\n');
    process.stderr.write(lines.map((line) => `${level}: ${about}${line}\n`).join(''));
  };
}

const log = { info: logAt('info'), warning: logAt('warning'), error: logAt('error') };

// --- one request

/** A name with a mistake would let objects go without their cleanup. */
function checkNames(handlers) {
  const { schedules = {}, ...rest } = handlers;
  const unknown = Object.keys(rest).filter((name) => !ACTIONS.includes(name));
  if (unknown.length > 0) throw new TypeError(`there is no action ${unknown[0]}; there are ${ACTIONS.join(', ')}, schedules`);
  const wrong = Object.entries({ ...schedules, ...rest }).find(([, value]) => value !== undefined && typeof value !== 'function');
  if (wrong) throw new TypeError(`the handler's ${wrong[0]} is no function`);
  const { startup, ...ofWatches } = rest;
  const withoutWatch = Object.keys(ofWatches).length === 0 && (startup || Object.keys(schedules).length > 0);
  if (!handlers.reconcile && !withoutWatch) throw new TypeError('the handler lacks the function reconcile');
}

// What nobody serves although the configuration asks for it: the work would be missed without a word.
const LACKING = {
  reconcile: (watch) => `no function that reconciles objects of the watch ${watch}: serve({ reconcile })`,
  schedule: (name) => `no function for the schedule ${name}: serve({ schedules: { '${name}': ... } })`,
  startup: () => 'no function for startup: serve({ startup })',
};

/** undefined: nothing is to be done. */
function findFunction({ action, watch }, handlers) {
  const [from, name] = action === 'schedule' ? [handlers.schedules ?? {}, watch] : [handlers, action];
  const found = Object.hasOwn(from, name) && (action === 'schedule' || ACTIONS.includes(action)) ? from[name] : undefined;
  if (!found && Object.hasOwn(LACKING, action)) throw new Permanent(`the handler has ${LACKING[action](watch)}`);
  return found;
}

async function runFunction(request, handlers) {
  if ((request.version ?? VERSION) !== VERSION) {
    throw new Permanent(`the request has version ${request.version}, and this kit knows ${VERSION}: use a newer kit`);
  }
  const found = await findFunction(request, handlers)?.(request);
  if (found === undefined || found === null) return {};
  if (typeof found !== 'object' || Array.isArray(found)) {
    throw new TypeError(`${request.action}() returned ${format('%j', found)}, and not an object or nothing`);
  }
  return found;
}

function refuseOddNumbers(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`an answer cannot have ${value} (${key})`);
  return value;
}

function failure(error) {
  if (error instanceof Permanent) return { error: String(error.message), permanent: true };
  if (error instanceof Temporary) {
    return { error: String(error.message), ...(error.retryAfter !== undefined && { retryAfter: error.retryAfter }) };
  }
  log.error('the handler has failed: %s', error?.stack ?? error);
  return { error: String(error) };
}

/** The answer to a request, as the operator gets it, without id. A failure is an answer as well. */
async function answer(request, handlers) {
  try {
    return JSON.parse(JSON.stringify(await runFunction(request, handlers), refuseOddNumbers));
  } catch (error) {
    try {
      return JSON.parse(JSON.stringify(failure(error)));
    } catch { // anything may be thrown
      return { error: 'what the handler threw has no text' };
    }
  }
}

// --- the loop

/** The lines of standard input. readline takes U+2028 for an end of line. */
async function* readLines() {
  let parts = [];
  for await (let chunk of process.stdin) {
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10)) {
      yield Buffer.concat([...parts, chunk.subarray(0, end)]).toString();
      parts = [];
      chunk = chunk.subarray(end + 1);
    }
    if (chunk.length > 0) parts.push(chunk);
  }
  if (parts.length > 0) yield Buffer.concat(parts).toString();
}

/** The function that writes an answer. From here on, what anybody prints goes to standard error. */
function takeOutput() {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  process.stdout.on('error', (error) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  return (text) => new Promise((resolve) => { write(text, resolve); });
}

/** The request, or { id, refusal } of one that cannot be read: others wait for the process, so it goes on. The operator writes the id
 * first. */
function parse(line) {
  let reason = 'it is no object with an action';
  try {
    const request = JSON.parse(line);
    if (typeof request?.action === 'string') return request;
  } catch (error) {
    reason = error.message;
  }
  log.error('the request cannot be read: %s', reason);
  const id = /^\s*\{\s*"id"\s*:\s*(\d{1,15})\b/.exec(line)?.[1];
  if (id === undefined) process.exit(EXIT_DATA);
  return { id: Number(id), refusal: { error: `the request cannot be read: ${reason}`, permanent: true } };
}

async function loop(handlers) {
  const write = takeOutput();
  const running = new Set();
  let unanswered = 0;
  let asked = false;
  process.on('SIGTERM', () => { // at once while it waits for a request, or else when the answers are written
    asked = true;
    if (running.size === 0) process.exit(0);
  });

  async function serveOne(request) {
    const found = request.action === undefined ? request.refusal : await current.run(request, () => answer(request, handlers));
    unanswered -= 1;
    // The id comes first: it tells whose answer is too long.
    await write(`${JSON.stringify(request.id === undefined ? found : Object.assign({ id: 0 }, found, { id: request.id }))}\n`);
  }

  for await (const line of readLines()) {
    if (asked) break;
    const request = parse(line);
    unanswered += 1;
    several ||= unanswered > 1;
    const serving = serveOne(request).finally(() => {
      running.delete(serving);
      if (asked && running.size === 0) process.exit(0);
    });
    running.add(serving);
    if (request.id === undefined) break;
  }
  await Promise.all(running);
  process.exit(0); // whatever the handler keeps open
}

/** Answers requests until there are no more; then the process ends. Call it once. */
function serve(handlers) {
  checkNames(handlers);
  loop(handlers);
}

module.exports = { Permanent, Temporary, answer, integer, log, serve };
