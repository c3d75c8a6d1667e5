/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A handler that has changed is a change: objects that failed under the former one run again
 * (lib/controller/run/handler-change.h). All handlers are looked at after each start and each reload, by
 * their hash (handler-hash.h), step by step beside all else that the loop does.
 */

struct supervisor;

void handlers_review(struct supervisor *supervisor);  /* begins anew with all of them */
int handlers_continue(struct supervisor *supervisor); /* at the end of a turn; negative errno */
