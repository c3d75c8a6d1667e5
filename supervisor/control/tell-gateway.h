/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

struct supervisor;

/* Whether the operator is live and ready: `reconciledctl health`, /livez and /readyz are one. */
struct health {
        bool live;        /* every process is heard in time */
        bool ready;       /* and every watch has been in sync since the start, and `startup` has succeeded */
        char reason[256]; /* why not; "" when both */
};

void health_get(const struct supervisor *supervisor, struct health *ret);

/* Metrics and health go to the gateway with each heartbeat, if there is one and it keeps up. */
void gateway_tell(struct supervisor *supervisor);
/* The same if the health has changed since the gateway was told: `health --ready` and /readyz are one. */
void gateway_tell_change(struct supervisor *supervisor);
