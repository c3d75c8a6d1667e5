/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the configuration is read: tables of keys (lib/config/table.c) applied to YAML mappings by a generic
 * reader (lib/config/reader.c); files are found and merged in config.c. Private to config*.c.
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

enum key_kind {
        KEY_TEXT,
        KEY_DURATION, /* min and max in usec */
        KEY_UNSIGNED, /* min and max */
        KEY_TEXTS,    /* list of strings: char ** and a size_t behind it */
        KEY_TRIGGER,
        KEY_BOOL,
        KEY_SIZE,    /* bytes, with a unit */
        KEY_CPU,     /* "2", "0.5" or "500m"; min and max in thousandths */
        KEY_CHOICE,  /* one of the words in `choice`: an enum by its place */
        KEY_MAPPING, /* keys; offset, if not 0: of a bool that says that it is there */
        KEY_KINDS,   /* list of mappings of `keys`: struct config_owned * and a size_t behind it */
        KEY_PAIRS, /* mapping of the author's own names to texts: struct config_pair * and a size_t behind */
        KEY_WATCHES,
        KEY_LATER, /* known, and refused: a later version brings it */
};

struct key_table;

struct key {
        const char *name;
        enum key_kind kind;
        size_t offset; /* in the struct of the table */
        uint64_t min, max;
        const struct key_table *keys;
        bool required;
        const char *const *choice; /* ends with NULL */
};

struct key_table {
        const struct key *key;
        size_t count;
};

extern const struct key_table config_table, watch_table;

/* With all defaults but texts, which check_config() sets; NULL on lack of memory. */
struct config *config_new(void);

/* Adds a problem at a node (NULL: the file). */
void problem_add(struct reader *reader, const yaml_node_t *node, bool warning, const char *key,
                 const char *format, ...) _printf_(5, 6);

/* What was to be checked could not be: where the reason is not the configuration, the next start may find
 * that it is right. */
void note_system_error(struct reader *reader, int error);

/* Reads a mapping into `target`; path is the key of the mapping ("" = the document). */
void read_mapping(struct reader *reader, yaml_node_t *node, const char *path, const struct key_table *table,
                  void *target);
yaml_node_t *mapping_find(struct reader *reader, yaml_node_t *mapping, const char *name);

/* lib/config/check.c: what no single key can tell. */
void check_config(struct reader *reader);
void places_done(struct reader *reader);
/* lib/config/program.c */
void check_certificate(struct reader *reader, const char *certificate_file, const char *key_file);
/* Whether its handler would act as the operator itself (handler.kubernetes). */
void check_separate(struct reader *reader, const struct config_watch *watch);
void check_kubeconfig(struct reader *reader, yaml_node_t *node, const char *key, const char *path);
void check_program(struct reader *reader, yaml_node_t *node, const char *key, const char *program);
/* lib/config/handler.c: its command, and what it is given. */
void check_handler(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch);
void handler_done(struct config_handler *handler);
/* lib/config/access.c */
void check_access(struct reader *reader, yaml_node_t *handler_node, const char *path,
                  struct config_handler *handler);
void find_beside_file(struct reader *reader, char **path); /* "./" and "../" are of the file that is read */
/* ${NAME} becomes what the environment says, $$ a dollar sign. */
void expand_text(struct reader *reader, const yaml_node_t *node, const char *key, char **value);
/* lib/config/notes.c: one watch beside those before it. */
void check_id(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch);
void notes_done(struct config_watch *watch);
/* lib/config/limits.c: what the users of handlers may have in processes, from the limits of all watches. */
void sum_user_pids(struct config *config);
/* lib/config/user.c */
void check_user(struct reader *reader, yaml_node_t *node, const char *key, struct config_handler *handler);
void check_watch(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch);
void watch_defaults(struct config_watch *watch);
/* Each kind that a watch owns becomes a watch. */
int expand_owned(struct config *config);
void watch_done(struct config_watch *watch);
