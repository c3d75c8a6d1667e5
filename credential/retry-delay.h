/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* How long to wait after so many failures in a row (1 at least), in microseconds: a second, doubled with
 * each, a minute at most. */
uint64_t credential_backoff(unsigned failures);
#define CREDENTIAL_BACKOFF_MIN_USEC UINT64_C(1000000)
#define CREDENTIAL_BACKOFF_MAX_USEC UINT64_C(60000000)
