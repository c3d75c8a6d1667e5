#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same as handler.sh for `serve` and for `batch`: jq is started once for each worker, or each batch, and reads a line for each
# object. serve.sh COUNT [status]
answer='{id}'
if [ "${2:-}" = status ]; then
        answer='{id, status: {seen: .object.spec.round}}'
fi
# `1 | stderr` writes that one byte.
exec jq --unbuffered -c "$answer | . as \$answer | 1 | stderr | \$answer" 2>>"$1"
