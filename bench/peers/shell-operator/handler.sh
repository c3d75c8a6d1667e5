#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What reconciled runs where shell-operator runs hook.sh: handler.sh COUNT [status]
if [ "${2:-}" = status ]; then
        sed -n 's/.*"spec":{"round":\([0-9]*\).*/{"status":{"seen":\1}}/p' || exit
fi
printf . >>"$1"
