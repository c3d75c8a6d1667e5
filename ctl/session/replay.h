/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "ctl/session/ctl-run.h"

/* Runs again what the folder options->object has recorded, and shows where answers differ; returns the exit
 * code. */
int ctl_replay(const struct ctl_run_options *options);
