/* SPDX-License-Identifier: Apache-2.0 */
/* See program.h. One state a program, compiled once; jq_start() begins it again for each object. */
#include "jq/program.h"

#include <errno.h>
#include <jq.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "object/fingerprint.h"
#include "object/keyed-hash.h"
#include "object/scan-value.h"
#include "object/scan.h"
#include "json/json.h"

#define RESULT_MAX  (1024 * 1024) /* bytes that may come out for one object */
#define MESSAGE_MAX 400
#define TRIM_MIN    10000 /* values: some megabytes */

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"

struct jq_program {
        jq_state *state;
        struct text complaint; /* of compiling */
};

/* Appends the words on one line, and without those that are for users of jq's own tool. */
static void append_words(struct text *line, const char *words)
{
        static const char *const left_out[] = {"(Unix shell quoting issues?) ", "<top-level>, "};

        while (*words) {
                size_t length = strspn(words, " \t\n\v\f\r");

                if (length > 0 && words[length])
                        text_append(line, " ", 1);
                words += length;
                for (size_t i = 0; i < ELEMENTS(left_out); i++)
                        if (strncmp(words, left_out[i], strlen(left_out[i])) == 0)
                                words += strlen(left_out[i]);
                length = strcspn(words, " \t\n\v\f\r");
                text_append(line, words, length);
                words += length;
        }
}

static void on_complaint(void *userdata, jv message)
{
        struct jq_program *program = userdata;
        jv text = jq_format_error(message);
        const char *words = jv_string_value(text);
        unsigned count;

        if (strncmp(words, "jq: error: ", 11) == 0)
                words += 11;
        if (program->complaint.size < MESSAGE_MAX && sscanf(words, "jq: %u compile error", &count) != 1) {
                text_append_string(&program->complaint, program->complaint.size > 0 ? "; " : "");
                append_words(&program->complaint, words);
        }
        jv_free(text);
}

static void set_complaint(struct error *error, const struct text *complaint)
{
        _cleanup_free_ char *line =
                complaint->size > 0 ? strndup(complaint->data, MESSAGE_MAX) : strdup("it does not compile");

        if (line)
                utf8_clean(line);
        error_set(error, -EINVAL, "%s", line ? line : "no memory");
}

/* jq's own writes to our standard error, past the log: raw content, also of Secrets. On the same line, so
 * that complaints name the right one. */
#define QUIET "def stderr: .; "

/* Only at the beginning can modules be named; libjq aborts over them where it has no path for them. */
static bool names_modules(const char *text)
{
        static const char *const word[] = {"module", "import", "include"};

        for (;;) {
                text += strspn(text, " \t\n\r");
                if (*text != '#')
                        break;
                text += strcspn(text, "\n");
        }
        for (size_t i = 0; i < ELEMENTS(word); i++)
                if (strncmp(text, word[i], strlen(word[i])) == 0 &&
                    !strspn(text + strlen(word[i]), NAME_CHARACTERS))
                        return true;
        return false;
}

/* The complaint about the program alone names the author's own columns, and none of our words. */
static void complain_of_program(struct jq_program *program, const char *text)
{
        text_clear(&program->complaint);
        if (names_modules(text))
                text_append_string(&program->complaint, "it may not name modules at its beginning");
        else if (jq_compile(program->state, text))
                text_append_string(&program->complaint, "it does not compile");
}

int jq_program_new(const char *text, struct jq_program **ret, struct error *error)
{
        struct jq_program *program = calloc(1, sizeof(*program));
        _cleanup_free_ char *quiet = format_string(QUIET "%s", text);

        if (!quiet || !program || !(program->state = jq_init())) {
                free(program);
                return error_set(error, -ENOMEM, "no memory for a jq program");
        }
        jq_set_error_cb(program->state, on_complaint, program);
        if (!jq_compile(program->state, quiet)) {
                complain_of_program(program, text);
                set_complaint(error, &program->complaint);
                jq_program_free(program);
                return -EINVAL;
        }
        *ret = program;
        return 0;
}

void jq_program_free(struct jq_program *program)
{
        if (!program)
                return;
        jq_teardown(&program->state);
        text_done(&program->complaint);
        free(program);
}

/* ---- running */

static int set_failure(struct error *error, jv failure)
{
        jv message = jv_invalid_get_msg(failure);
        int r;

        if (jv_get_kind(message) != JV_KIND_STRING)
                message = jv_dump_string(message, 0);
        r = error_set(error, -EBADMSG, "%.400s", jv_string_value(message));
        jv_free(message);
        return r;
}

/* The object as the program sees it; invalid when it cannot be read. */
static jv make_input(const char *json, size_t size, bool partial)
{
        jv object = jv_parse_sized(json, (int)size);

        if (!jv_is_valid(object) || jv_get_kind(object) != JV_KIND_OBJECT)
                return object;
        if (partial)
                return jv_object_set(jv_object(), jv_string("metadata"),
                                     jv_object_get(object, jv_string("metadata")));
        return jv_object_delete(jv_object_delete(object, jv_string("apiVersion")), jv_string("kind"));
}

typedef int (*on_value_t)(jv value, void *userdata); /* takes the value; 1: no more are wanted */

static int run_on(struct jq_program *program, jv value, on_value_t on_value, void *userdata,
                  struct error *error)
{
        int r = 0;

        if (!jv_is_valid(value))
                return set_failure(error, value);
        jq_start(program->state, value, 0);
        while (r == 0 && jv_is_valid(value = jq_next(program->state)))
                r = on_value(value, userdata);
        if (r < 0)
                return error_set(error, r, "its output is larger than 1 MiB");
        if (r > 0)
                return 0;
        if (jv_invalid_has_msg(jv_copy(value)))
                return set_failure(error, value);
        jv_free(value);
        return jq_halted(program->state) ? error_set(error, -EBADMSG, "it halts") : 0;
}

/* jq would keep the last object until the next one, and the C library its memory, in each process that runs programs. */
static void forget_input(struct jq_program *program, size_t values)
{
        jq_start(program->state, jv_null(), 0);
        if (values > TRIM_MIN)
                malloc_trim(0);
}

/* jq takes some 400 bytes for each {}: a tree of 40 MiB at most. */
static int run_jq(struct jq_program *program, const char *json, size_t size, bool partial,
                  on_value_t on_value, void *userdata, struct error *error)
{
        size_t values = scan_count_values(json, size);
        int r;

        if (values > JSON_BOUNDED_MAX || size > INT32_MAX)
                return error_set(error, -E2BIG,
                                 "the object has more than %d values (objects, lists, texts, numbers)",
                                 JSON_BOUNDED_MAX);
        r = run_on(program, make_input(json, size, partial), on_value, userdata, error);
        forget_input(program, values);
        return r;
}

static int take_truth(jv value, void *userdata)
{
        bool *truth = userdata;

        *truth = jv_get_kind(value) != JV_KIND_FALSE && jv_get_kind(value) != JV_KIND_NULL;
        jv_free(value);
        return 1;
}

int jq_program_test(struct jq_program *program, const char *json, size_t size, bool partial, bool *ret,
                    struct error *error)
{
        bool truth = false;
        int r = run_jq(program, json, size, partial, take_truth, &truth, error);

        if (r >= 0)
                *ret = truth;
        return r;
}

static int take_jq_text(jv value, void *userdata)
{
        struct text *out = userdata;
        jv text = jv_dump_string(value, JV_PRINT_SORTED);

        text_append_string(out, jv_string_value(text));
        text_append_string(out, "\n");
        jv_free(text);
        return out->failed || out->size > RESULT_MAX ? -EBADMSG : 0;
}

struct names {
        int (*on_name)(const char *name, void *userdata);
        void *userdata;
        bool no_name;
        int status;
};

static int take_name(jv value, void *userdata)
{
        struct names *names = userdata;

        names->no_name = jv_get_kind(value) != JV_KIND_STRING;
        if (!names->no_name)
                names->status = names->on_name(jv_string_value(value), names->userdata);
        jv_free(value);
        return names->no_name || names->status < 0 ? 1 : 0;
}

int jq_program_names(struct jq_program *program, const char *json, size_t size, bool partial,
                     int (*on_name)(const char *name, void *userdata), void *userdata, struct error *error)
{
        struct names names = {.on_name = on_name, .userdata = userdata};
        int r = run_jq(program, json, size, partial, take_name, &names, error);

        if (r < 0)
                return r;
        return names.no_name ? error_set(error, -EBADMSG, "its output is not a string") : names.status;
}

/* ---- fingerprints */

static int fingerprint_values(const struct trigger_basis *basis, enum trigger trigger, const char *json,
                              size_t size, uint64_t *ret)
{
        return (basis->partial ? fingerprint_metadata : fingerprint_object)(trigger, &basis->ours, json,
                                                                            size, ret);
}

int trigger_fingerprint(const struct trigger_basis *basis, const char *json, size_t size,
                        uint64_t *ret_fingerprint, struct error *error)
{
        _cleanup_text_ struct text result = TEXT_EMPTY;
        struct siphash hash;
        int r;

        if (basis->trigger != TRIGGER_JQ)
                return fingerprint_values(basis, basis->trigger, json, size, ret_fingerprint);
        r = run_jq(basis->program, json, size, basis->partial, take_jq_text, &result, error);
        if (r < 0) {
                r = fingerprint_values(basis, TRIGGER_ESSENCE, json, size, ret_fingerprint);
                return r < 0 ? r : 1;
        }
        hash = keyed_hash_of(HASHED_PROGRAM_RESULT);
        keyed_hash_add(&hash, result.data, result.size);
        /* That somebody wants it gone is due to be handled whatever a program looks at: its finalizers wait for us. */
        *ret_fingerprint = keyed_hash_end(hash, scan_is_going(json, size) ? "1" : "0", 1);
        return 0;
}
