// SPDX-License-Identifier: Apache-2.0
'use strict';

const assert = require('node:assert');
const test = require('node:test');
const { run } = require('reconciled/testing');
const { finalize, reconcile } = require('./website.js');

test('children and address', async () => {
  const answer = await run(reconcile, { metadata: { name: 'hello' }, spec: { html: '<h1>Hello</h1>', replicas: 2 } });
  assert.deepStrictEqual(answer.status, { address: 'http://hello.default' });
  assert.deepStrictEqual(answer.children.map((child) => child.kind), ['ConfigMap', 'Deployment', 'Service']);
  assert.strictEqual(answer.children[1].spec.replicas, 2);
});

test('without a page', async () => {
  assert.deepStrictEqual(await run(reconcile, { spec: {} }), { error: 'the web site lacks spec.html', permanent: true });
});

test('its end', async () => {
  assert.deepStrictEqual(await run(finalize, {}, { action: 'finalize' }), {});
});
