/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading one kubeconfig file as a tree, with places for error messages. Private to lib/kubeconfig/. */
#include <stdbool.h>
#include <yaml.h>

#include "base/error.h"

struct yaml_file {
        char *path;
        yaml_document_t document;
        bool loaded;         /* false: the file is empty */
        struct error *error; /* problems go here once it is read */
};

/* 0; -ENOENT; -EINVAL with the place. */
int yaml_file_load(const char *path, struct yaml_file *ret, struct error *error);
void yaml_file_done(struct yaml_file *file); /* wipes */

yaml_node_t *yaml_root(struct yaml_file *file);
/* NULL when `node` is no mapping or lacks the key. */
yaml_node_t *yaml_member(struct yaml_file *file, yaml_node_t *node, const char *key);
bool yaml_is_empty(const yaml_node_t *node); /* "", null, [] or {} */
/* The text of a scalar; NULL for anything else and for null. */
const char *yaml_text(const yaml_node_t *node);
const char *yaml_member_text(struct yaml_file *file, yaml_node_t *node, const char *key);
/* The entry with this name of a list of {name, <field>}: its <field>. */
yaml_node_t *yaml_named(struct yaml_file *file, const char *list, const char *name, const char *field);

/* -EINVAL with "path:line: key: text" in the file's error. */
int yaml_error(const struct yaml_file *file, const yaml_node_t *node, const char *key, const char *format,
               ...) _printf_(4, 5);
