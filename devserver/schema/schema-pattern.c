/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "devserver/schema/schema-pattern.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <pcre2.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define REPEAT_MAX   1000    /* as RE2 */
#define COMPILED_MAX 1000    /* then all are dropped, and compiled again when they are needed */
#define STEPS_MAX    5000000 /* of a match: some tenths of a second */

/* ---- what RE2 refuses and PCRE2 takes */

/* After * + ? and {n}: no further one, but for one that makes it lazy. 0: there is none here. */
static size_t repeat_length(const char *at, long *ret_most)
{
        char *end;

        *ret_most = 0;
        if (*at != '{' || !isdigit((unsigned char)at[1]))
                return *at && strchr("*+?", *at) ? 1 : 0;
        *ret_most = strtol(at + 1, &end, 10);
        if (*end == ',' && isdigit((unsigned char)end[1]))
                *ret_most = strtol(end + 1, &end, 10);
        else if (*end == ',')
                end++;
        return *end == '}' ? (size_t)(end + 1 - at) : 0;
}

/* Groups may have a name or set flags: no assertions, no conditions, no verbs. */
static bool is_group(const char *at)
{
        const char *flags;

        if (at[1] != '?')
                return at[1] != '*';
        flags = at + 2 + strspn(at + 2, "imsU-");
        return strncmp(at + 2, "P<", 2) == 0 || (at[2] == '<' && at[3] != '=' && at[3] != '!') ||
               *flags == ':' || (*flags == ')' && flags > at + 2);
}

static bool is_escape(const char *at, bool in_class)
{
        return !isalnum((unsigned char)at[1]) ||
               strchr(in_class ? "dDsSwWpPafnrtvx0" : "dDsSwWpPafnrtvx0AbBzQ", at[1]);
}

/* What is wrong, and how long the place is at which *ret_at is left. NULL: nothing. */
static const char *find_foreign(const char *at, const char **ret_at, size_t *ret_length)
{
        bool in_class = false;
        long most;

        for (size_t length, behind = 0; *at; at += length) {
                length = in_class ? 0 : repeat_length(at, &most);
                *ret_at = at - behind;
                *ret_length = length + behind;
                if (length > 0 && behind > 0)
                        return "invalid nested repetition operator";
                if (length > 0 && most > REPEAT_MAX)
                        return "invalid repeat count";
                behind = length;
                if (length > 0) {
                        length += at[length] == '?' ? 1 : 0;
                        continue;
                }
                length = 1;
                *ret_length = *at == '(' ? strnlen(at, at[1] && at[2] == '<' ? 4 : 3) : 2;
                if (*at == '\\' && !is_escape(at, in_class))
                        return "invalid escape sequence";
                if (*at == '(' && !in_class && !is_group(at))
                        return "invalid or unsupported Perl syntax";
                if (*at == '\\' && at[1] == 'Q' && strstr(at, "\\E"))
                        length = (size_t)(strstr(at, "\\E") + 2 - at);
                else if (*at == '\\' && at[1])
                        length = 2;
                else if (*at == '(' && at[1] == '?')
                        length = 2;
                else if (*at == '[' && in_class && at[1] == ':' && strstr(at, ":]"))
                        length = (size_t)(strstr(at, ":]") + 2 - at);
                else if (*at == '[' && !in_class)
                        length += strspn(at + 1, "^") + (at[1 + strspn(at + 1, "^")] == ']' ? 1 : 0);
                in_class = in_class ? *at != ']' : *at == '[';
        }
        return NULL;
}

/* ---- compiled patterns */

struct compiled {
        char *pattern;
        pcre2_code *code; /* NULL: it cannot be used */
};

static void *known; /* a tree of tsearch() over struct compiled */
static size_t known_count;

static pcre2_code *compile(const char *pattern, uint32_t options, char *text, size_t size)
{
        pcre2_compile_context *context = pcre2_compile_context_create(NULL);
        int error = PCRE2_ERROR_NOMEMORY;
        PCRE2_SIZE offset;
        pcre2_code *code = NULL;
        PCRE2_UCHAR words[128] = "";

        if (context) {
                pcre2_set_newline(context, PCRE2_NEWLINE_LF);
                code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | options, &error, &offset, context);
        }
        pcre2_compile_context_free(context);
        if (!code && text) {
                pcre2_get_error_message(error, words, sizeof(words));
                snprintf(text, size, "error parsing regexp: %s: `%.200s`", (const char *)words, pattern);
        }
        return code;
}

const char *pattern_mistake(const char *pattern, char *text, size_t size)
{
        const char *at = pattern, *foreign;
        size_t length = 0;
        pcre2_code *code;

        foreign = find_foreign(pattern, &at, &length);
        if (foreign) {
                snprintf(text, size, "error parsing regexp: %s: `%.*s`", foreign, (int)length, at);
                return text;
        }
        code = compile(pattern, 0, text, size);
        if (!code)
                return text;
        pcre2_code_free(code);
        return NULL;
}

/* The pattern is found wherever it begins by one match, whose steps are limited: a search has a limit for
 * each character at which it begins again. */
static pcre2_code *compile_search(const char *pattern)
{
        _cleanup_text_ struct text search = TEXT_EMPTY;
        char ignored[512];

        if (pattern_mistake(pattern, ignored, sizeof(ignored)))
                return NULL;
        text_printf(&search, "(?s:.*?)(?:%s\\E)", pattern);
        return search.failed ? NULL : compile(search.data, PCRE2_ANCHORED, NULL, 0);
}

static int compare_patterns(const void *a, const void *b)
{
        return strcmp(((const struct compiled *)a)->pattern, ((const struct compiled *)b)->pattern);
}

static void free_compiled(void *pointer)
{
        struct compiled *compiled = pointer;

        pcre2_code_free(compiled->code);
        free(compiled->pattern);
        free(compiled);
}

void patterns_done(void)
{
        tdestroy(known, free_compiled);
        known = NULL;
        known_count = 0;
}

static const pcre2_code *find_compiled(const char *pattern)
{
        struct compiled wanted = {.pattern = (char *)pattern}, *made;
        void *node = tfind(&wanted, &known, compare_patterns);

        if (node)
                return (*(struct compiled **)node)->code;
        if (known_count >= COMPILED_MAX)
                patterns_done();
        made = calloc(1, sizeof(*made));
        if (made)
                made->pattern = strdup(pattern);
        if (!made || !made->pattern || !tsearch(made, &known, compare_patterns)) {
                if (made)
                        free_compiled(made);
                return NULL;
        }
        made->code = compile_search(pattern);
        known_count++;
        return made->code;
}

bool pattern_matches(const char *pattern, const char *text)
{
        const pcre2_code *code = find_compiled(pattern);
        pcre2_match_data *match = code ? pcre2_match_data_create(1, NULL) : NULL;
        pcre2_match_context *limits = match ? pcre2_match_context_create(NULL) : NULL;
        int r = PCRE2_ERROR_NOMEMORY;

        if (limits) {
                pcre2_set_match_limit(limits, STEPS_MAX);
                r = pcre2_match(code, (PCRE2_SPTR)text, strlen(text), 0, 0, match, limits);
        }
        pcre2_match_context_free(limits);
        pcre2_match_data_free(match);
        return r >= 0;
}

/* ---- formats */

#define DATE  "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
#define TIME  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})"
#define LABEL "[a-zA-Z0-9](-?[a-zA-Z0-9]){0,62}"
#define UUID  "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"

bool format_matches(const char *format, const char *text)
{
        static const struct {
                const char *name, *pattern;
        } table[] = {
                {"byte", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"},
                {"date", "^" DATE "$"},
                {"date-time", "^" DATE "[tT]" TIME "$"},
                {"datetime", "^" DATE "[tT]" TIME "$"},
                {"duration", "[0-9]\\s*([nuµm]?s|m|h|d|w|nano|micro|milli|sec|min|hr|day|wk)|^[+-]?0$"},
                {"email", "^[^@]+@[^@]+$"},
                {"hostname", "^" LABEL "(\\." LABEL ")*$"},
                {"uri", "^(/|[a-zA-Z][a-zA-Z0-9+.-]*:)"},
                {"uuid", UUID},
        };
        unsigned char address[sizeof(struct in6_addr)];

        if (strcmp(format, "ipv4") == 0)
                return inet_pton(AF_INET, text, address) == 1;
        if (strcmp(format, "ipv6") == 0)
                return inet_pton(AF_INET6, text, address) == 1;
        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (strcmp(table[i].name, format) == 0)
                        return pattern_matches(table[i].pattern, text);
        return true;
}
