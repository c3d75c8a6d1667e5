/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The notes of what was under way that older releases have left, in the runtime directory. */
#include "supervisor/supervisor.h"

int under_way_judge_old(struct supervisor *supervisor);
