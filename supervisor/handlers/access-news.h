/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * News of the access that handlers have of their own. The credential process keeps it fresh and says how
 * that goes. A watch whose handler has no valid token runs nothing, and is degraded; past its deadline
 * that is fatal, as for everything else that it needs of the server.
 */
#include "ipc/message.h"

struct supervisor;

int access_take(struct supervisor *supervisor, const struct message_access *message); /* -ENOMEM */
