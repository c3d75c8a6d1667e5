/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages of all children, by the state of the child (child-process.h), and the end of their channels. */
#include "ipc/channel.h"

extern const struct channel_callbacks child_messages; /* userdata: struct child_slot */
