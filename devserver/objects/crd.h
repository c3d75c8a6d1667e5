/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* CustomResourceDefinitions: each served version becomes a resource. */
#include <cjson/cJSON.h>

#include "devserver/server.h"

void crd_add_status(cJSON *crd); /* as a definition that is accepted has it */
/* A CRD was created or changed: kinds are served, or not any more. */
void crd_changed(struct server *server, const cJSON *crd);
void crd_deleted(struct server *server, const cJSON *crd);
/* The resource that holds a CRD's objects; NULL: it is not served. `name`: "widgets.example.com". */
struct resource *crd_table(struct server *server, const char *name);
