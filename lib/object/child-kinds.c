/* SPDX-License-Identifier: Apache-2.0 */
#include "object/child-kinds.h"

#include <stdlib.h>

bool child_kinds_are_unknown(const char *kinds)
{
        return kinds[0] == '?';
}

size_t child_kinds_count(const char *kinds)
{
        const char *digits = kinds + child_kinds_are_unknown(kinds);
        size_t size = strspn(digits, "0123456789");

        /* The version of a kind may begin with a digit, too. */
        return digits[size] == '#' ? strtoull(digits, NULL, 10) : 0;
}

uint64_t child_kinds_hash(const char *kinds)
{
        return child_kinds_count(kinds) > 0 ? strtoull(strchr(kinds, '#') + 1, NULL, 16) : 0;
}

bool child_kinds_are_none(const char *kinds)
{
        return child_kinds_count(kinds) == 0;
}

static struct span span_between(const char *start, const char *end)
{
        return (struct span){start, (size_t)(end - start)};
}

/* ret is clear. False: it is no entry. */
static bool read_entry(const char *text, const char *end, struct child_kind *ret)
{
        const char *versions = memchr(text, '=', (size_t)(end - text)),
                   *place_end = versions ? versions : end;
        const char *at = memchr(text, '@', (size_t)(place_end - text)), *kind_end = at ? at : place_end;
        const char *slash = memrchr(text, '/', (size_t)(kind_end - text));
        char *digits_end;

        if (!slash)
                return false;
        ret->api_version = span_between(text, slash);
        ret->kind = span_between(slash + 1, kind_end);
        ret->namespace_name = at ? span_between(at + 1, place_end) : span_between(place_end, place_end);
        if (versions) {
                ret->epoch = strtoull(versions + 1, &digits_end, 10);
                if (*digits_end == ':' && digits_end < end)
                        ret->versions = span_between(digits_end + 1, end);
        }
        return true;
}

bool child_kinds_next(const char **at, struct child_kind *ret)
{
        bool found = false;

        *at += **at == '?';
        while (**at && !found) {
                const char *end = *at + strcspn(*at, ",");

                *ret = (struct child_kind){0};
                found = read_entry(*at, end, ret);
                *at = end + (*end == ',');
        }
        return found;
}

static bool span_is(struct span span, const char *text)
{
        return strlen(text) == span.size && memcmp(span.start, text, span.size) == 0;
}

bool child_kind_is(const struct child_kind *kind, const char *api_version, const char *name)
{
        return span_is(kind->api_version, api_version) && span_is(kind->kind, name);
}

bool child_kind_next_version(struct span *left, uint64_t *ret, bool *ret_deleted)
{
        const char *end;
        char *digits_end;

        if (left->size == 0)
                return false;
        end = left->start + left->size;
        *ret_deleted = left->start[0] == '-';
        *ret = strtoull(left->start + *ret_deleted, &digits_end, 10);
        *left = *digits_end == '.' && digits_end + 1 < end ? span_between(digits_end + 1, end)
                                                           : span_between(end, end);
        return true;
}

bool child_kind_has(const struct child_kind *kind, uint64_t version, bool deleted)
{
        struct span left = kind->versions;
        uint64_t known;
        bool is_deleted;

        while (child_kind_next_version(&left, &known, &is_deleted))
                if (known == version && (is_deleted || !deleted))
                        return true;
        return false;
}

bool child_kinds_have(const char *kinds, const char *api_version, const char *kind, uint64_t epoch,
                      uint64_t version, bool deleted)
{
        struct child_kind entry;

        while (child_kinds_next(&kinds, &entry))
                if (child_kind_is(&entry, api_version, kind) && entry.epoch == epoch &&
                    child_kind_has(&entry, version, deleted))
                        return true;
        return false;
}
