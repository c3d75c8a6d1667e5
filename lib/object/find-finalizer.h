/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds our finalizer in an object's metadata, with the scanner. */
#include "object/scan.h"

struct finalizer_view {
        bool ours;     /* our finalizer is on the object */
        bool deleting; /* the object has a deletionTimestamp */
};

int finalizer_look(const char *json, size_t size, const char *finalizer, struct finalizer_view *ret);
