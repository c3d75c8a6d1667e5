/* SPDX-License-Identifier: Apache-2.0 */
#include "election/leader-record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const char *const line_name[] = {"reconciled-leader", "operator", "cluster",  "epoch", "writes",
                                        "duration",          "holder",   "released", "late"};

/* The part of the text that has not been read yet; it begins with a line. */
struct reader {
        const char *at, *end;
};

static bool is_name_character(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.';
}

bool leader_name_fits(const char *name)
{
        size_t size = 0;

        while (is_name_character(name[size]))
                size++;
        return !name[size] && size > 0 && size <= LEADER_NAME_MAX;
}

static bool take(struct reader *reader, const char *text)
{
        size_t size = strlen(text);

        if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, text, size) != 0)
                return false;
        reader->at += size;
        return true;
}

static bool take_word(struct reader *reader, char *word, size_t max)
{
        size_t size = 0;

        while (size < max && is_name_character(reader->at[size])) /* a line's end is none */
                size++;
        memcpy(word, reader->at, size);
        word[size] = '\0';
        reader->at += size;
        return size > 0;
}

static bool take_line(struct reader *reader, const char *name, char word[static LEADER_NAME_MAX + 1])
{
        return take(reader, name) && take(reader, " ") && take_word(reader, word, LEADER_NAME_MAX) &&
               take(reader, "\n");
}

/* One form for each number: no sign, no zeros in front. */
static bool take_number(struct reader *reader, const char *name, uint64_t least, uint64_t most,
                        uint64_t *ret)
{
        char word[LEADER_NAME_MAX + 1];
        uint64_t number = 0;

        if (!take_line(reader, name, word) || word[0] == '0' || strspn(word, "0123456789") != strlen(word) ||
            strlen(word) > 18)
                return false;
        for (const char *digit = word; *digit; digit++)
                number = number * 10 + (uint64_t)(*digit - '0');
        *ret = number;
        return number >= least && number <= most;
}

static bool take_holder(struct reader *reader, struct leader_claim *claim)
{
        if (take(reader, "holder "))
                return take_word(reader, claim->holder.name, LEADER_NAME_MAX) && take(reader, " ") &&
                       take_word(reader, claim->holder.life, LEADER_LIFE_MAX) && take(reader, "\n");
        claim->released = take(reader, "released");
        if (!claim->released)
                return true;
        if (take(reader, " ") && !take_word(reader, claim->successor, LEADER_NAME_MAX))
                return false;
        if (!take(reader, "\n"))
                return false;
        claim->late = take(reader, "late\n");
        return true;
}

/* The rest: no control characters, no empty line, no line that has its place above. */
static bool check_rest(struct reader reader)
{
        for (; reader.at < reader.end; reader.at++) {
                size_t size = strcspn(reader.at, " \n");

                for (size_t i = 0; i < ELEMENTS(line_name); i++)
                        if (size == strlen(line_name[i]) && memcmp(reader.at, line_name[i], size) == 0)
                                return false;
                if (*reader.at == '\n')
                        return false;
                for (; *reader.at != '\n'; reader.at++)
                        if ((unsigned char)*reader.at < ' ' || *reader.at == 0x7f)
                                return false;
        }
        return true;
}

static bool read_lines(struct reader *reader, struct leader_record *record)
{
        struct leader_claim *claim = &record->claim;

        return take_line(reader, "operator", record->operator) &&
               take_line(reader, "cluster", record->cluster) &&
               take_number(reader, "epoch", 1, INT64_MAX, &claim->epoch) &&
               take_number(reader, "writes", 1, INT64_MAX, &claim->writes) &&
               take_number(reader, "duration", LEADER_DURATION_MIN, LEADER_DURATION_MAX,
                           &claim->duration_usec) &&
               take_holder(reader, claim) && check_rest(*reader);
}

int leader_record_read(const char *text, size_t size, const char *operator, const char * cluster,
                       struct leader_record *ret, struct error *error)
{
        struct reader reader = {text, text + size};
        struct leader_record record = {.rest = NULL};
        char version[LEADER_NAME_MAX + 1];

        if (size == 0 || size > LEADER_RECORD_MAX || text[size - 1] != '\n' ||
            !take_line(&reader, line_name[0], version))
                return error_set(error, -EBADMSG, "the leader record is none of reconciled's");
        if (strcmp(version, "1") != 0)
                return error_set(
                        error, -EPROTONOSUPPORT,
                        "the leader record is of a newer release (%s), after which this one does not lead",
                        version);
        /* What is written again is no larger than what may be read. */
        if (!read_lines(&reader, &record) || reader.end - reader.at > LEADER_RECORD_MAX / 2)
                return error_set(error, -EBADMSG, "the leader record is damaged");
        if (strcmp(record.operator, operator) != 0 || strcmp(record.cluster, cluster) != 0)
                return error_set(error, -EXDEV,
                                 "the leader record is of operator %s in cluster %s, and this is %s in %s",
                                 record.operator, record.cluster, operator, cluster);
        if (reader.at < reader.end) {
                record.rest = strndup(reader.at, (size_t)(reader.end - reader.at));
                if (!record.rest)
                        return error_set(error, -ENOMEM, "out of memory");
        }
        *ret = record;
        return 0;
}

void leader_record_write(struct text *text, const struct leader_record *record)
{
        const struct leader_claim *claim = &record->claim;

        assert(leader_name_fits(record->operator) && leader_name_fits(record->cluster));
        assert(claim->epoch > 0 && claim->writes > 0 && !(claim->released && claim->holder.name[0]) &&
               (claim->released || !claim->late));
        text_printf(text,
                    "reconciled-leader 1\noperator %s\ncluster %s\nepoch %llu\nwrites %llu\nduration %llu\n",
                    record->operator, record->cluster, (unsigned long long)claim->epoch,
                    (unsigned long long)claim->writes, (unsigned long long)claim->duration_usec);
        if (claim->holder.name[0])
                text_printf(text, "holder %s %s\n", claim->holder.name, claim->holder.life);
        if (claim->released)
                text_printf(text, "released%s%s\n%s", claim->successor[0] ? " " : "", claim->successor,
                            claim->late ? "late\n" : "");
        text_append_string(text, record->rest);
}

void leader_record_done(struct leader_record *record)
{
        free(record->rest);
        record->rest = NULL;
}

bool leader_member_is(const struct leader_member *a, const struct leader_member *b)
{
        return strcmp(a->name, b->name) == 0 && strcmp(a->life, b->life) == 0;
}
