/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the configuration is read: tables of keys (table.h) applied to YAML mappings by a generic reader
 * (yaml-reader.h); files are found and merged in config.c. Private to config/.
 */
#include <yaml.h>

#include "config/config.h"

struct reader {
        struct config *config;
        struct config_problems *problems;
        const char *file;
        yaml_document_t *document;
        bool out_of_memory;
        int system_error; /* negative errno: a file could not be read; 0 */
        /* Where each scalar of the document itself was set: two files must not contradict each other. */
        struct place {
                char *key, *file;
                unsigned line;
        } * place;
        size_t place_count;
};

struct key_table;
