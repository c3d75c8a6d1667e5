/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* CONFIG messages: the first message to each child. */
#include <stdint.h>

#include "base/error.h"
#include "config/config.h"

struct child_slot;
struct supervisor;

int configure_child(struct child_slot *child); /* sends it; negative errno */
/* Whether the configuration can be sent to the children: -EMSGSIZE, -EINVAL (text that is no UTF-8),
 * -ENOMEM. */
int configure_can_tell(const struct supervisor *supervisor, const struct config *config,
                       struct error *error);
