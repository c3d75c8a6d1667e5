/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The end of a turn: runs are picked, the ledger is committed, and what waits for the commit leaves. */
#include "controller/controller.h"

void controller_settle(struct controller *controller);
void controller_commit_time(struct controller *controller); /* WAKE_COMMIT */
/* A portion of what has time: rows that are made due, related objects, an uninstallation. */
void controller_idle(struct controller *controller);
