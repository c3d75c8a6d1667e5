/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The way of metrics and health to the gateway, if there is one and it keeps up. */

struct supervisor;

void gateway_tell(struct supervisor *supervisor); /* with each heartbeat */
/* The same where health is another one than the gateway was told: `health --ready` and /readyz are one. */
void gateway_tell_change(struct supervisor *supervisor);
