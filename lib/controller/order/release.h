/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "controller/controller.h"

/* By hand: our finalizer comes off one object without a cleanup. -ENOENT: there is no such object. */
int release_finalizer(struct controller *controller, struct watch *watch, const char *key, const char *why,
                      uint64_t user);
