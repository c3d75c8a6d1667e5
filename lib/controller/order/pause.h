/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Watches that somebody has paused. */
#include "controller/controller.h"

int pause_load(struct watch *watch);
/* 0: it is so already, 1: it is new. */
int pause_watch(struct watch *watch, const char *reason, uint64_t user);
int pause_resume(struct watch *watch, uint64_t user);
