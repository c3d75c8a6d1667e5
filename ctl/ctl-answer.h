/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Questions to a running operator, over its control socket, and its answers. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "store/record.h"
#include "store/store.h"

/* Asks `command`, for ten seconds at most, and returns the answer as a tree that the caller owns. argument:
 * NULL-terminated, or NULL. -ENOENT: no operator runs there; -EACCES: it refuses us; -EPROTO and others with
 * a text. */
int ctl_query(const char *runtime_directory, const char *command, char **argument, cJSON **ret,
              struct error *error);
/* The same; the answer is not looked at. */
int ctl_command(const char *runtime_directory, const char *command, char **argument, struct error *error);

/* Others write names and errors: control characters become '?' in all strings below. */
void ctl_clean_texts(cJSON *item);

/* A name alone is the key of what belongs to no namespace: mostly, the namespace was forgotten. */
#define CTL_KEY_HINT "a key is NAMESPACE/NAME (or give -n NAMESPACE)"

enum form { FORM_PEOPLE, FORM_JSON, FORM_YAML };

/* Writes the answer in that form; for people `print` does. */
void ctl_show_answer(cJSON *answer, enum form form, void (*print)(const cJSON *answer, const void *userdata),
                     const void *userdata);
/* Asks, and writes the answer in that form; for people `print` does. argument: NULL-terminated, or NULL.
 * Returns the exit code. */
int ctl_show(const char *runtime_directory, const char *command, const char *const *argument, enum form form,
             void (*print)(const cJSON *answer, const void *userdata), const void *userdata);

/* Reads from the watch's store the object that an answer to "explain" is about. 0; -ENOENT: it is not there;
 * or the errno of the store. */
int ctl_read_store(const cJSON *answer, const char *key, struct store_object *ret);

/* Members of an answer: 0 or false if it is missing. And times in the form that people read. */
uint64_t ctl_number(const cJSON *object, const char *name);
bool ctl_is(const cJSON *object, const char *name);
/* "3m12s", rounded for people: a duration; the time since a time of the wall clock (microseconds), "-" if that
 * is 0; the time until one. Each returns `buffer` or a constant; 64 bytes are enough. */
const char *ctl_duration(uint64_t usec, char *buffer, size_t size);
const char *ctl_since(const cJSON *object, const char *name, char *buffer, size_t size);
const char *ctl_until(const cJSON *object, const char *name, char *buffer, size_t size);
