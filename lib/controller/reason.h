/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a run is by its reason. */
#include <stdbool.h>

#include "ipc/run-reason.h"

bool run_is_without_handler(enum run_reason reason); /* only our finalizer is put on or taken off */
bool finalizer_is_reason(enum run_reason reason);    /* ... where it is not as its watch wants it */
