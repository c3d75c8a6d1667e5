/* SPDX-License-Identifier: Apache-2.0 */
/* See program.h. One state a program, compiled once; jq_start() begins it again for each object. */
#include "jq/program.h"

#include <errno.h>
#include <jq.h>
#include <malloc.h>
#include <oniguruma.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/duration.h"
#include "base/text.h"
#include "object/fingerprint.h"
#include "object/keyed-hash.h"
#include "object/scan-value.h"
#include "object/scan.h"
#include "json/json.h"

#define RESULT_MAX  (1024 * 1024) /* bytes that may come out for one object */
#define MESSAGE_MAX 400
#define TRIM_MIN    10000 /* values: some megabytes */

#define REGEX_STEPS 10000000 /* that one search may take back: a fraction of the time that a program has */

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

/*
 * In front of each program, on the same line, so that complaints name the right one:
 *
 * - jq's own writes to our standard error would pass by the log, with raw content, also of Secrets.
 * - What one call of libjq does in C cannot be interrupted. Where its time grows with a product of two sizes (a regular
 *   expression that looks at the rest of the text from each place on; each value of a list with each of another one), or a
 *   text becomes a tree, the sizes are bounded.
 */
#define REGEX_TEXT_MAX "16384"
#define PAIRS_MAX      "1000000"
#define FROM_JSON_MAX  "262144"

static const char *const regex_function[] = {
        "match(a)",      "match(a; b)",  "test(a)",     "test(a; b)",    "capture(a)",
        "capture(a; b)", "scan(a)",      "split(a; b)", "splits(a)",     "splits(a; b)",
        "sub(a; b)",     "sub(a; b; c)", "gsub(a; b)",  "gsub(a; b; c)",
};

static const char *const prelude[] = {
        "def stderr: .;",
        "def _pairs($a; $b): if $a * $b > " PAIRS_MAX " then",
        "  error(\"\\($a) values are too many to be compared with \\($b) others\") else . end;",
        "def _old_minus(a; b): a - b;",
        "def _minus(a; b): b as $b | a as $a |",
        "  if ($a | type) == \"array\" and ($b | type) == \"array\" then _pairs($a | length; $b | length) else . end |",
        "  _old_minus($a; $b);",
        "def _old_contains(a): contains(a);",
        "def contains($a): if type == \"array\" or type == \"object\" then",
        "  _pairs([..] | length; [$a | ..] | length) else . end | _old_contains($a);",
        "def inside(a): . as $b | a | contains($b);",
        "def _old_fromjson: fromjson;",
        "def fromjson: if type == \"string\" and utf8bytelength > " FROM_JSON_MAX " then",
        "  error(\"a text of more than " FROM_JSON_MAX
        " bytes is not read as JSON\") else _old_fromjson end;",
        "def _text: if type == \"string\" and utf8bytelength > " REGEX_TEXT_MAX " then",
        "  error(\"a regular expression looks at texts of at most " REGEX_TEXT_MAX " bytes\") else . end;",
};

/* The program with all this before it; NULL without memory. */
static char *with_prelude(const char *program)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;

        FOREACH_ARRAY(line, prelude, ELEMENTS(prelude))
                text_printf(&text, "%s ", *line);
        FOREACH_ARRAY(function, regex_function, ELEMENTS(regex_function))
                text_printf(&text, "def _old_%s: %s; def %s: _text | _old_%s; ", *function, *function,
                            *function, *function);
        text_append_string(&text, program);
        return text_take(&text);
}

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
        _cleanup_free_ char *quiet = with_prelude(text);

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

/* ---- time: no text of a tenant may take more of it, however the program is written */

static jq_state *volatile running;
static volatile sig_atomic_t time_is_over;

/* A signal's handler. Where the interpreter is, it halts before its next step; a search that libjq begins fails at once. */
static void on_time_over(int signal _unused_)
{
        time_is_over = 1;
        (void)onig_set_retry_limit_in_search(1);
        if (running && !jq_halted(running))
                jq_halt(running, jv_null(), jv_null());
}

static void catch_time_over(void)
{
        const struct sigaction action = {.sa_handler = on_time_over, .sa_flags = SA_RESTART};

        (void)sigaction(SIGPROF, &action, NULL); /* it fails for numbers that are no signals */
}

static void time_begins(jq_state *state)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        const struct itimerval time = {.it_value = {.tv_usec = JQ_TIME_MAX}};

        pthread_once(&once, catch_time_over);
        (void)onig_set_retry_limit_in_search(REGEX_STEPS);
        time_is_over = 0;
        running = state;
        (void)setitimer(ITIMER_PROF, &time, NULL);
}

static void time_ends(void)
{
        const struct itimerval none = {.it_value = {0}};

        (void)setitimer(ITIMER_PROF, &none, NULL);
        running = NULL;
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
        time_begins(program->state);
        while (r == 0 && jv_is_valid(value = jq_next(program->state)))
                r = on_value(value, userdata);
        time_ends();
        if (r <= 0 && time_is_over) {
                if (r == 0)
                        jv_free(value);
                return error_set(error, -EBADMSG,
                                 "it needs more than %d ms of processor time for the object",
                                 JQ_TIME_MAX / 1000);
        }
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

/* jq takes some 400 bytes for each {}: a tree of 12 MiB at most. */
static int run_jq(struct jq_program *program, const char *json, size_t size, bool partial,
                  on_value_t on_value, void *userdata, struct error *error)
{
        size_t values = scan_count_values(json, size);
        int r;

        if (values > JQ_VALUES_MAX || size > INT32_MAX)
                return error_set(error, -E2BIG,
                                 "the object has more than %d values (objects, lists, texts, numbers)",
                                 JQ_VALUES_MAX);
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
        return names->no_name || names->status != 0 ? 1 : 0;
}

int jq_program_names(struct jq_program *program, const char *json, size_t size, bool partial,
                     int (*on_name)(const char *name, void *userdata), void *userdata, struct error *error)
{
        struct names names = {.on_name = on_name, .userdata = userdata};
        int r = run_jq(program, json, size, partial, take_name, &names, error);

        if (r < 0)
                return r;
        if (names.no_name)
                return error_set(error, -EBADMSG, "its output is not a string");
        return names.status < 0 ? names.status : 0;
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
