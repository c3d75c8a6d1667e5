/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Notes of runs that older releases have left, in the runtime directory. */

struct supervisor;

int under_way_judge_old(struct supervisor *supervisor); /* negative errno */
