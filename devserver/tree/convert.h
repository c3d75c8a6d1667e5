/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One object in the versions that serve it. Custom resources differ by their apiVersion alone; Events have
 * other names in core/v1 than in events.k8s.io/v1.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>

bool convert_is_event(const cJSON *object); /* of the core or of events.k8s.io */
/* 0 or -ENOMEM; an object without an apiVersion stays as it is. */
int convert_to(cJSON *object, const char *api_version);
/* The members in the order of the version's struct, and what it always writes. kind, apiVersion and metadata
 * must stand first already. */
void convert_arrange_event(cJSON *event);
