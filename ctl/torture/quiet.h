/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether an operator still has something to do, by its status. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* A number that changes when something moves. */
uint64_t quiet_mark(const cJSON *status);
/* A watch is not in sync, or an object runs, is queued, or is tried again. */
bool quiet_is_busy(const cJSON *status);
uint64_t quiet_waiting(const cJSON *status); /* how many objects wait for a time */
/* waiting: the answer to `list waiting`. One waits for another reason than that its handler, or the configuration, names a time. */
bool quiet_owes(const cJSON *status, const cJSON *waiting);
/* A watch has not reported what the server's objects ({path, object}) say. Not to be relied on: a selector hides objects. */
bool quiet_is_behind(const cJSON *status, const cJSON *objects);
/* object: an entry of quiet_failing() or of `list waiting`. Another attempt will not help: there is none, or there were too many. */
bool quiet_is_given_up(const cJSON *object);
uint64_t quiet_runs(const cJSON *status); /* since the operator's start */
/* In words, what it waits for. Owned by the caller; NULL: no memory. */
char *quiet_obstacle(const cJSON *status);
/* The objects that have failed last: all of them are given up once it is quiet. A list, borrowed. */
const cJSON *quiet_failing(const cJSON *status);
