/* SPDX-License-Identifier: Apache-2.0 */
#include "credential/retry-delay.h"

#include "base/backoff.h"

uint64_t credential_backoff(unsigned failures)
{
        return backoff_after(CREDENTIAL_BACKOFF_MIN_USEC, CREDENTIAL_BACKOFF_MAX_USEC, failures);
}
