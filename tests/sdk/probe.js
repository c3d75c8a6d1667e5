// SPDX-License-Identifier: Apache-2.0
// The probe in JavaScript: README.md.
'use strict';

const { readFile } = require('node:fs/promises');
const { Permanent, Temporary, log, serve } = require('reconciled');

const actions = {
  status: ({ name }, { size }) => ({ status: { name, size }, requeueAfter: '300000ms' }),
  metrics: ({ name }) => ({
    metrics: [{ name: 'probe_calls', action: 'add', value: 1.5, labels: { name } },
      { name: 'probe_seconds', action: 'observe', value: 0, buckets: [0.5, 2] }],
  }),
  at: () => ({ requeueAt: new Date(Date.UTC(2036, 1, 29, 3, 0, 0, 125)) }),
  children({ name }, spec, { children = [] }) {
    const shown = children.map((child) => child.metadata.name).join(' ');
    return { children: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { shown } }] };
  },
  childless: () => ({ children: [] }),
  conditions: () => ({
    conditions: [{ type: 'Ready', status: 'True', reason: 'Up', message: 'it is up' }],
    events: [{ type: 'Warning', reason: 'Slow', note: 'it took long' }],
  }),
  nothing() {},
  print() {
    console.log('to standard output');
    return { message: 'printed' };
  },
  log() {
    log.info('one');
    log.warning('two\nthree');
    log.error('four');
  },
  temporary() { throw new Temporary('the service is away', { retryAfter: 90_000 }); },
  async backoff() { throw new Temporary('the service is away'); },
  permanent() { throw new Permanent('spec.size is negative'); },
  half: () => ({ error: 'half of it', status: { half: true } }),
  crash() { throw new Error('broken on purpose'); },
  text: (metadata, { text }) => ({ message: text }),
  attempt: (metadata, { prefix }, { attempt, watch, reason, lastError }) => ({
    message: `${prefix}: attempt ${attempt} of ${watch}, ${reason} after: ${lastError}`,
  }),
  async wait(metadata, { fifo }) {
    log.info('it waits');
    return { message: await readFile(fifo, 'utf8') };
  },
  held: (...values) => actions.wait(...values),
  // what only this language can do wrong
  bigint: () => ({ status: { size: 1n } }),
  nan: () => ({ status: { size: NaN } }),
  list: () => [1],
  textless() { throw { toString: 1 }; },
  later() { throw new Temporary('later', { retryAfter: 1n }); },
  reject: () => Promise.reject(new Permanent('rejected')),
};

const schedules = {
  nightly: ({ watch, object }) => ({ message: `${watch} of ${object.metadata.name}` }),
};

serve(process.argv[2] === 'schedules' ? { schedules } : {
  async reconcile(request) {
    const { metadata, spec } = request.object;
    return actions[spec.do](metadata, spec, request);
  },
  finalize: () => ({ done: false, requeueAfter: '5000ms' }),
  startup: async ({ watch }) => ({ patch: { data: { prepared: watch } } }),
  schedules,
});
