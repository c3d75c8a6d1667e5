/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the words of a template stand for. Private to ctl/init/. */
#include "base/text.h"
#include "ctl/init/init.h"

struct language {
        const char *name;
        const char *source;        /* the handler, for people */
        const char *command;       /* of reconciled.yaml */
        const char *test;          /* what `make test` runs beside the rest; NULL: nothing */
        const char *built, *build; /* the program that is built, and how; NULL if none is */
        const char *ignored;       /* for .gitignore; NULL: nothing */
};

struct child_kind;

struct init_values {
        const struct init_options *options;
        const struct language *language;
        const struct child_kind *child; /* NULL if there is none */
        const char *name;               /* of the operator */
        char singular[128], plural[136];
};

/* 0; EXIT_CODE_USAGE after having said why. */
int init_values_read(const struct init_options *options, struct init_values *ret);
/* Whether a word of "@?WORD" is true. */
bool init_values_has(const struct init_values *values, const char *word);
/* Appends the value of @name@, which may have several lines. False if there is no such name. */
bool init_values_write(const struct init_values *values, const char *name, struct text *out);
