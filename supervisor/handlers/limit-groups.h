/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Limits of handlers: control groups are taken where they are delegated to us, and a limit that does not
 * hold is logged at once, not when it fails to hold. */

struct supervisor;
struct watch;

void limits_prepare(struct supervisor *supervisor); /* before the first child is started */
void limits_judge(struct watch *watch);             /* logs what is new */
