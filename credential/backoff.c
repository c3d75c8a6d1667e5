/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of attempts while they fail. */
#include "credential/backoff.h"

uint64_t credential_backoff(unsigned failures)
{
        uint64_t usec = CREDENTIAL_BACKOFF_MIN_USEC << (failures < 10 ? failures - 1 : 9);

        return usec < CREDENTIAL_BACKOFF_MAX_USEC ? usec : CREDENTIAL_BACKOFF_MAX_USEC;
}
