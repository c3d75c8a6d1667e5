/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the configuration is read: tables of keys (table.h) applied to YAML mappings by a generic reader
 * (yaml-reader.h); files are found and merged in config.c. Private to config/.
 */
#include <string.h>
#include <yaml.h>

#include "config/config.h"

struct reader {
        struct config *config;
        struct config_problems *problems;
        const char *file;
        yaml_document_t *document;
        bool out_of_memory;
        int system_error; /* negative errno: a file could not be read; 0 */
        /* Where each top-level scalar was set: two files must not contradict each other. */
        struct place {
                char *key, *file;
                unsigned line;
        } * place;
        size_t place_count;
};

static inline const char *text_or_empty(const char *text)
{
        return text ? text : "";
}

static inline bool is_same_text(const char *a, const char *b) /* none is "" */
{
        return strcmp(text_or_empty(a), text_or_empty(b)) == 0;
}

/* Labels of lower-case letters, digits and '-', with dots between them. */
static inline bool is_subdomain(const char *text)
{
        static const char label[] = "-abcdefghijklmnopqrstuvwxyz0123456789";

        for (;;) {
                size_t length = strspn(text, label);

                if (length == 0 || text[0] == '-' || text[length - 1] == '-')
                        return false;
                if (text[length] != '.')
                        return text[length] == '\0';
                text += length + 1;
        }
}
