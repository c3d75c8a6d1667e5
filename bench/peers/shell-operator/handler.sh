#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What reconciled runs where shell-operator runs hook.sh: handler.sh COUNT [status]
if [ "${2:-}" = status ]; then
        jq -c '{status: {seen: .object.spec.round}}' || exit
fi
printf . >>"$1"
