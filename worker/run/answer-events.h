/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The check of an answer's `events`, by the rules of events.k8s.io/v1. */
#include <cjson/cJSON.h>

#include "base/error.h"

/* 0, or -EINVAL, with the place and what is wrong there in `error`. */
int events_check(const cJSON *list, struct error *error);
