/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Definitions of kinds (CustomResourceDefinitions) from manifests: what `rbac` must know of custom kinds. */
#include <stdbool.h>
#include <stddef.h>

struct definition {
        char *group, *kind, *plural;
        bool of_cluster;
};

struct definitions {
        struct definition *item;
        size_t count;
};

/* Adds those of a file: YAML or JSON, each in a document of its own or in a List; other manifests are passed
 * over. A file without a definition is a mistake. Mistakes are written to standard error. */
int definitions_read(struct definitions *definitions, const char *path);
void definitions_done(struct definitions *definitions);
/* NULL if there is none. */
const struct definition *definition_find(const struct definitions *definitions, const char *api_version,
                                         const char *kind);
