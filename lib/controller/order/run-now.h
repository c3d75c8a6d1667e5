/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "controller/controller.h"

/* By hand: an object runs now; release: out of quarantine, as soon as nothing else runs. -ENOENT: there is no
 * such object. */
int run_now(struct controller *controller, struct watch *watch, const char *key, bool release);
