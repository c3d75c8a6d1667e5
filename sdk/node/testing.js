// SPDX-License-Identifier: Apache-2.0
// For tests of handlers: docs/kits.md.
'use strict';

const { answer } = require('./index.js');

/** The answer that the operator would get, failures included. What a request has besides the object is filled in, or is
 * in `more`: action, children, related, attempt. */
function run(handlerFunction, thing, more = {}) {
  const metadata = { name: 'test', namespace: 'default', uid: '00000000-0000-4000-8000-000000000000', ...thing.metadata };
  const request = {
    version: 1, action: 'reconcile', reason: 'added', attempt: 1, lastError: '', watch: 'test',
    object: { apiVersion: 'example.com/v1', kind: 'Test', ...thing, metadata }, ...more,
  };
  return answer(request, request.action === 'schedule' ? { schedules: { [request.watch]: handlerFunction } }
    : { [request.action]: handlerFunction });
}

module.exports = { run };
