#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shell-operator way: asked for its configuration, it names what it watches; else it is told what happened, with as many
# objects at once as have come meanwhile: one byte for each of them.
if [ "${1:-}" = "--config" ]; then
        cat <<'CONFIG'
configVersion: v1
kubernetes:
- name: widgets
  apiVersion: example.com/v1
  kind: Widget
  executeHookOnEvent: [Added, Modified]
  jqFilter: .spec
CONFIG
        exit 0
fi
objects='.[] | if .type == "Synchronization" then .objects[].object else .object end'
if [ "${BENCH_STATUS:-}" = 1 ]; then
        jq -c "$objects"' | {operation: "MergePatch", apiVersion, kind, namespace: .metadata.namespace, name: .metadata.name,
                subresource: "/status", mergePatch: {status: {seen: .spec.round}}}' "$BINDING_CONTEXT_PATH" >>"$KUBERNETES_PATCH_PATH" || exit
fi
jq -j "[$objects] | \".\" * length // \"\"" "$BINDING_CONTEXT_PATH" >>"$BENCH_COUNT"
