/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the operator is live and ready: `reconciledctl health`, /livez and /readyz are one. */
#include <stdbool.h>

struct supervisor;

struct health {
        bool live;        /* every process is heard in time */
        bool ready;       /* and every watch has been in sync since the start */
        char reason[256]; /* why not; "" when both */
};

void health_get(const struct supervisor *supervisor, struct health *ret);
