#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The handler of examples/website with the kit: a page in a ConfigMap, a Deployment that serves it, a Service in front.
'use strict';

const { createHash } = require('node:crypto');
const { Permanent, log, serve } = require('reconciled');

function children(name, { html, replicas = 1 }) {
  const labels = { website: name };
  // The page's hash among the annotations: another page is another pod.
  const page = createHash('sha256').update(html).digest('hex');
  const container = {
    name: 'web', image: 'nginx:stable', ports: [{ containerPort: 80 }],
    volumeMounts: [{ name: 'page', mountPath: '/usr/share/nginx/html' }],
  };
  const template = {
    metadata: { labels, annotations: { page } },
    spec: { volumes: [{ name: 'page', configMap: { name } }], containers: [container] },
  };
  return [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { 'index.html': html } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name }, spec: { replicas, selector: { matchLabels: labels }, template } },
    { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { selector: labels, ports: [{ port: 80, protocol: 'TCP' }] } },
  ];
}

function reconcile({ object: { metadata: { name, namespace }, spec } }) {
  if (spec.html === undefined) throw new Permanent('the web site lacks spec.html');
  log.info('web site %s/%s', namespace, name);
  return { children: children(name, spec), status: { address: `http://${name}.${namespace}` } };
}

function finalize(request) {
  log.info('web site %s goes, and its children with it', request.object.metadata.name);
}

if (require.main === module) serve({ reconcile, finalize });

module.exports = { finalize, reconcile };
