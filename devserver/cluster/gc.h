/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "devserver/server.h"

void gc_run(struct server *server); /* until there is nothing left to look at */
