/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `stringData` of a Secret is written as `data`. The API server moves it there itself, but its field manager
 * goes on to own members of stringData, which no Secret has: a key that a later answer leaves out would stay
 * forever, and a rollback could not bring one back.
 */
#include "base/text.h"
#include "object/scan.h"

/* Appends the Secret with its stringData as data. 1; 0: there is no stringData, or it cannot be moved, and
 * `out` is empty; negative: it cannot be read, or no memory. */
int secret_data_body(struct span object, struct text *out);
