/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Object stores of an earlier life. */
#include <stdbool.h>

struct supervisor;

bool former_stores_exist(const struct supervisor *supervisor);
