/* SPDX-License-Identifier: Apache-2.0 */
#include "election/lasting.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object/identity.h"

#define NUMBER_MAX UINT64_C(999999999999999999)

/* What a line has after its name, in this order. */
static const struct {
        const char *name;
        struct lasting_field {
                size_t offset;
                bool is_text;
        } field[7];
        size_t count;
} table[] = {
#define TEXT(member)                                                                                        \
        {                                                                                                   \
                offsetof(struct lasting, member), true                                                      \
        }
#define NUMBER(member)                                                                                      \
        {                                                                                                   \
                offsetof(struct lasting, member), false                                                     \
        }
        [LASTING_UNINSTALL] = {"uninstalling", {NUMBER(since), NUMBER(user)}, 2},
        [LASTING_PAUSE] = {"paused", {TEXT(watch), NUMBER(since), NUMBER(user), TEXT(reason)}, 4},
        [LASTING_RUN] = {"running", {TEXT(watch), TEXT(key), TEXT(uid), NUMBER(flag)}, 4},
        [LASTING_CRASH] = {"crashed",
                           {TEXT(watch), TEXT(key), TEXT(uid), NUMBER(crashes), NUMBER(until)},
                           5},
        [LASTING_DOUBT] = {"doubtful",
                           {TEXT(watch), TEXT(key), TEXT(uid), NUMBER(crashes), NUMBER(until), NUMBER(flag)},
                           6},
};

static char **text_field(struct lasting *lasting, const struct lasting_field *field)
{
        return (char **)(void *)((char *)lasting + field->offset);
}

static uint64_t *number_field(struct lasting *lasting, const struct lasting_field *field)
{
        return (uint64_t *)(void *)((char *)lasting + field->offset);
}

/* ---- reading */

static int digit_of(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* NULL: it is damaged, or (errno ENOMEM) there is no memory. */
static char *unescape(const char *word, size_t size)
{
        char *text = malloc(size + 1), *out = text;

        if (!text)
                return NULL;
        if (size == 1 && word[0] == '-')
                size = 0;
        for (size_t i = 0; i < size; i++) {
                int high = 0, low = (unsigned char)word[i];

                if (word[i] == '%') {
                        high = i + 2 < size ? digit_of(word[i + 1]) : -1;
                        low = i + 2 < size ? digit_of(word[i + 2]) : -1;
                        i += 2;
                }
                if (high < 0 || low < 0 || high * 16 + low == 0) {
                        free(text);
                        errno = EBADMSG;
                        return NULL;
                }
                *out++ = (char)(high * 16 + low);
        }
        *out = '\0';
        return text;
}

static bool read_lasting_number(const char *word, size_t size, uint64_t *ret)
{
        uint64_t number = 0;

        if (size == 0 || size > 18 || (word[0] == '0' && size > 1))
                return false;
        for (size_t i = 0; i < size; i++) {
                if (!is_digit(word[i]))
                        return false;
                number = number * 10 + (uint64_t)(word[i] - '0');
        }
        *ret = number;
        return true;
}

/* Reads the word at *at, and moves *at past it and the space after it. */
static size_t next_word(const char **at, const char *end)
{
        const char *space = memchr(*at, ' ', (size_t)(end - *at));
        size_t size = (size_t)((space ? space : end) - *at);

        *at = space ? space + 1 : end;
        return size;
}

static bool read_fields(const char *at, const char *end, struct lasting *ret)
{
        for (size_t i = 0; i < table[ret->kind].count; i++) {
                const struct lasting_field *field = &table[ret->kind].field[i];
                const char *word = at;
                size_t size = next_word(&at, end);

                if (size == 0 ||
                    (field->is_text ? !(*text_field(ret, field) = unescape(word, size))
                                    : !read_lasting_number(word, size, number_field(ret, field))))
                        return false;
        }
        return at == end && end[-1] != ' ' && ret->flag <= 1;
}

/* Whether some leader may have written it. */
static bool is_sane(const struct lasting *lasting)
{
        if (lasting->user > UINT32_MAX || lasting->crashes > LASTING_CRASHES_MAX ||
            (lasting->watch && !lasting->watch[0]) ||
            (lasting->key && !identity_fits(lasting->key, lasting->uid)))
                return false;
        return lasting->kind == LASTING_PAUSE   ? lasting->since > 0
               : lasting->kind == LASTING_DOUBT ? lasting->crashes > 0
                                                : true;
}

static enum lasting_kind kind_named(const char *name, size_t size)
{
        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (strlen(table[i].name) == size && memcmp(table[i].name, name, size) == 0)
                        return (enum lasting_kind)i;
        return LASTING_OTHER;
}

bool lasting_next(const char **at, struct lasting *ret)
{
        const char *line = *at, *word = line, *end = line + strcspn(line, "\n");

        errno = 0;
        if (!*line)
                return false;
        *ret = (struct lasting){.line = line, .line_size = (size_t)(end - line)};
        *at = *end ? end + 1 : end;
        ret->kind = kind_named(line, next_word(&word, end));
        if (ret->kind == LASTING_OTHER || (read_fields(word, end, ret) && is_sane(ret)))
                return true;
        lasting_done(ret);
        if (errno == ENOMEM)
                return false;
        *ret = (struct lasting){.kind = LASTING_DAMAGED, .line = line, .line_size = (size_t)(end - line)};
        return true;
}

/* ---- writing */

void lasting_write(struct text *text, const struct lasting *lasting)
{
        struct lasting copy = *lasting;

        assert(lasting->kind < LASTING_OTHER && lasting->flag <= 1);
        if (copy.crashes > LASTING_CRASHES_MAX)
                copy.crashes = LASTING_CRASHES_MAX;
        text_append_string(text, table[lasting->kind].name);
        for (size_t i = 0; i < table[lasting->kind].count; i++) {
                const struct lasting_field *field = &table[lasting->kind].field[i];

                text_append_string(text, " ");
                if (!field->is_text) {
                        uint64_t number = *number_field(&copy, field);

                        text_printf(text, "%llu",
                                    (unsigned long long)(number < NUMBER_MAX ? number : NUMBER_MAX));
                } else if (!strcmp(*text_field(&copy, field), "-")) {
                        text_append_string(text, "%2D");
                } else {
                        text_append_escaped(text,
                                            **text_field(&copy, field) ? *text_field(&copy, field) : "-");
                }
        }
        text_append_string(text, "\n");
}

void lasting_done(struct lasting *lasting)
{
        free(lasting->watch);
        free(lasting->key);
        free(lasting->uid);
        free(lasting->reason);
        lasting->watch = lasting->key = lasting->uid = lasting->reason = NULL;
}
