/* SPDX-License-Identifier: Apache-2.0 */
/* See asked.h. */
#include "worker/run/together/asked.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/short-hash.h"
#include "object/scan.h"

/* ---- the list */

void asked_add(struct asked **first, struct asked *asked)
{
        while (*first)
                first = &(*first)->next;
        *first = asked;
}

void asked_remove(struct asked **first, const struct asked *asked)
{
        while (*first && *first != asked)
                first = &(*first)->next;
        if (*first)
                *first = asked->next;
}

void asked_done(struct asked *asked)
{
        free(asked->text);
}

size_t asked_count_sent(const struct asked *first)
{
        size_t count = 0;

        for (; first; first = first->next)
                count += first->id > 0;
        return count;
}

size_t asked_count_unsent(const struct asked *first)
{
        size_t count = 0;

        for (; first; first = first->next)
                count += first->id == 0;
        return count;
}

/* ---- which one is answered */

static uint64_t number_of(struct span text)
{
        uint64_t number = 0;

        if (!text.start || text.size == 0 || text.size > 19 || text.start[0] == '0')
                return 0;
        for (size_t i = 0; i < text.size; i++) {
                if (text.start[i] < '0' || text.start[i] > '9')
                        return 0;
                number = 10 * number + (uint64_t)(text.start[i] - '0');
        }
        return number;
}

/* Kits write the id first. Bytes beyond the bound are lost. */
static uint64_t id_of_beginning(const char *line)
{
        uint64_t id = 0;

        return sscanf(line, "{ \"id\" : %" SCNu64 " ,", &id) == 1 ? id : 0;
}

static uint64_t id_of(const char *line, size_t size)
{
        struct span whole;

        return scan_value(line, size, &whole) >= 0 ? number_of(scan_get(whole, "id")) : 0;
}

bool asked_is_answer_to(const char *line, size_t size, uint64_t id)
{
        return id > 0 && id_of(line, size) == id;
}

bool asked_is_whole(const char *line, size_t size)
{
        struct span whole;
        size_t behind;

        if (scan_value(line, size, &whole) < 0)
                return false;
        behind = (size_t)(whole.start - line) + whole.size;
        return strspn(line + behind, " \t\r") == size - behind;
}

struct asked *asked_find(struct asked *first, const char *line, size_t size, bool cut, bool is_only)
{
        uint64_t id;

        if (line[0] != '{')
                return NULL;
        id = cut ? id_of_beginning(line) : id_of(line, size);
        for (; first; first = first->next)
                if (first->id > 0 && (first->id == id || (cut && is_only)))
                        return first;
        return NULL;
}

void asked_end(struct asked **first, struct asked *asked, enum asked_end end, const char *text, size_t size)
{
        asked_remove(first, asked);
        asked->is_over = true;
        asked->end = end;
        asked->text = malloc(size + 1); /* there may be NULs in it */
        if (asked->text) {
                memcpy(asked->text, text, size);
                asked->text[size] = '\0';
        }
        asked->size = size;
        fiber_wake(asked->run->fiber);
}

/* ---- who shares a process */

static uint64_t sign_of(const struct run *run)
{
        return XXH3_64bits(run->order->uid, strlen(run->order->uid)) | 1; /* 0: none is remembered */
}

static uint64_t *find_feared(const struct run *run)
{
        uint64_t sign = sign_of(run);

        for (size_t i = 0; i < WATCH_FEARED_MAX; i++)
                if (run->watch->feared[i] == sign)
                        return &run->watch->feared[i];
        return NULL;
}

bool asked_is_feared(const struct run *run)
{
        return find_feared(run) != NULL;
}

static void remember_asked(const struct run *run)
{
        struct worker_watch *watch = run->watch;

        if (!find_feared(run))
                watch->feared[watch->feared_next++ % WATCH_FEARED_MAX] = sign_of(run);
}

size_t asked_together(const struct run *run)
{
        const struct record_watch *config = run->watch->config;
        size_t most = config->batch_max > 0 ? config->batch_max : config->parallel;

        return run->worker->config->window <= 1 || most <= 1 || run->watch->apart > 0 || find_feared(run)
                       ? 1
                       : most;
}

size_t asked_at_once(const struct run *run)
{
        return run->watch->config->batch_max > 0 ? 1 : asked_together(run);
}

void asked_note_answer(const struct run *run)
{
        uint64_t *feared = find_feared(run);

        if (feared)
                *feared = 0;
        if (run->watch->apart > 0)
                run->watch->apart--;
}

static void tell_loss(const struct worker_watch *watch, size_t count, const char *why, const char *last_line)
{
        const char *name = watch->config->name;

        log_write(
                LOG_WARNING, NULL, LOG_FIELDS({"RECONCILED_WATCH", name}),
                "watch %s: %s, and %zu %s without an answer: they run again, one at a time; this counts as an "
                "attempt of none of them%s%s",
                name, why, count, count == 1 ? "object was" : "objects were", last_line[0] ? ": " : "",
                last_line);
}

static void end_sent(struct asked **first, enum asked_end end, const char *text)
{
        struct asked *asked = *first;

        while (asked) {
                struct asked *next = asked->next;

                if (asked->id > 0)
                        asked_end(first, asked, end, text, strlen(text));
                asked = next;
        }
}

static void end_alone(struct asked **first, enum asked_end end, const char *why, const char *last_line)
{
        char text[RUN_MESSAGE_MAX];

        snprintf(text, sizeof(text), "%s%s%.400s", why, last_line[0] ? ": " : "", last_line);
        end_sent(first, end, end == ASKED_EXITED ? last_line : text);
}

void asked_settle(struct asked **first, bool by_itself, enum asked_end end, const char *why,
                  const char *last_line)
{
        size_t count = asked_count_sent(*first);
        const struct asked *asked = *first;

        while (asked && asked->id == 0)
                asked = asked->next;
        if (!asked)
                return;
        if (by_itself) {
                asked->run->watch->apart = count;
                if (count > 1)
                        tell_loss(asked->run->watch, count, why, last_line);
                else
                        remember_asked(asked->run);
        }
        if (count > 1)
                end_sent(first, ASKED_LOST, why);
        else
                end_alone(first, end, why, last_line);
}

/* Any of them may have been answered in what nobody can read. */
void asked_settle_unclear(struct asked **first, bool had_others, const char *why)
{
        size_t count = asked_count_sent(*first);
        struct worker_watch *watch = NULL;

        if (count == 1 && !had_others) {
                end_sent(first, ASKED_UNREADABLE, why);
                return;
        }
        for (const struct asked *asked = *first; asked; asked = asked->next)
                if (asked->id > 0) {
                        watch = asked->run->watch;
                        remember_asked(asked->run);
                }
        if (!watch)
                return;
        watch->apart = count;
        tell_loss(watch, count, why, "");
        end_sent(first, ASKED_LOST, why);
}
