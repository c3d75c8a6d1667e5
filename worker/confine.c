/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/confine.h"

#include <string.h>

#include "ipc/message-id.h"
#include "object/child-kinds.h"
#include "object/confined.h"

#define SHOWN_MAX     10 /* kinds, and namespaces, in one advice */
#define STRANGERS_MAX 5  /* kinds of one list that nobody else knows, and that are looked for */

/* Judges one of the lists of an answer. */
struct bound {
        const char *name;
        bool is_patch;
        struct span text;
};

/* Describes what must be added to the configuration. */
struct advice {
        struct text kinds, namespaces;
        size_t kind_count, namespace_count;
};

static unsigned judge_bound(const struct run *run, const struct bound *bound,
                            const struct dependent *dependent)
{
        return dependent->release
                       ? 0
                       : confined_judge(run->watch->config, bound->is_patch, run->order->key,
                                        dependent->api_version, dependent->kind, dependent->namespace_name);
}

static bool has_item(const struct text *list, const char *item)
{
        size_t size = strlen(item);
        const char *found = list->data;

        for (; found && (found = strstr(found, item)); found++)
                if ((found == list->data || found[-1] == ' ') && (found[size] == ',' || !found[size]))
                        return true;
        return false;
}

/* Each text once. */
static void add_once(struct text *list, size_t *count, const char *item)
{
        if (has_item(list, item) || (*count)++ >= SHOWN_MAX)
                return;
        text_printf(list, "%s%s", list->size > 0 ? ", " : "", item);
}

static void add_advice(const struct bound *bound, const struct dependent *dependent, unsigned wrong,
                       struct advice *advice)
{
        char kind[500], namespace_name[160];
        bool is_elsewhere = (wrong & CONFINED_NAMESPACE) != 0;

        snprintf(namespace_name, sizeof(namespace_name), "%.120s", dependent->namespace_name);
        snprintf(kind, sizeof(kind), "{apiVersion: %.120s, kind: %.100s%s%s%s}", dependent->api_version,
                 dependent->kind, bound->is_patch && is_elsewhere ? ", namespaces: [" : "",
                 bound->is_patch && is_elsewhere ? namespace_name : "",
                 bound->is_patch && is_elsewhere ? "]" : "");
        if ((wrong & CONFINED_KIND) || bound->is_patch)
                add_once(&advice->kinds, &advice->kind_count, kind);
        if (is_elsewhere && !bound->is_patch)
                add_once(&advice->namespaces, &advice->namespace_count, namespace_name);
}

/* The line of the configuration. */
static void write_line(const struct bound *bound, const struct advice *advice, struct text *line)
{
        const char *kinds = advice->kinds.data, *namespaces = advice->namespaces.data;

        if (bound->is_patch)
                text_printf(line, "patches: [%s]", kinds ? kinds : "");
        else
                text_printf(line, "children: {%s%s%s%s%s%s%s}", kinds ? "kinds: [" : "", kinds ? kinds : "",
                            kinds ? "]" : "", kinds && namespaces ? ", " : "",
                            namespaces ? "namespaces: [" : "", namespaces ? namespaces : "",
                            namespaces ? "]" : "");
}

static const char *describe_wrong(const struct bound *bound, unsigned wrong)
{
        if (bound->is_patch)
                return wrong & CONFINED_KIND
                               ? "its kind is not among the `patches` of the watch in the configuration"
                               : "its namespace is not the object's own, and `patches` of the watch in the "
                                 "configuration does not name it in `namespaces` of the kind";
        return wrong & CONFINED_KIND
                       ? "neither `owns` nor `children.kinds` of the watch in the configuration names its "
                         "kind"
                       : "its namespace is not the object's own, and `children.namespaces` of the watch in "
                         "the configuration does not name it";
}

static int refuse_bound(struct run *run, const struct bound *bound, const struct dependent *first,
                        unsigned wrong, size_t count, const struct text *line)
{
        char name[600], more[60] = "";

        if (count > 1)
                snprintf(more, sizeof(more), " (and %zu more of them)", count - 1);
        return run_finish(
                run, RESULT_PERMANENT,
                "the handler's answer: %s[%zu], %s: %s%s; nothing of the answer was written. If the handler "
                "is meant to write it, add to watch %s, or to these lists where it has them: %s",
                bound->name, first->index, dependent_describe(first, name, sizeof(name)),
                describe_wrong(bound, wrong), more, run->watch->config->name,
                line->data ? line->data : "its kind");
}

/* 0; negative: the run has ended. */
static int confine(struct run *run, const struct bound *bound)
{
        _cleanup_(dependent_list_done) struct dependent_list list = {0};
        _cleanup_text_ struct text line = TEXT_EMPTY;
        const struct dependent *first = NULL;
        struct advice advice = {0};
        unsigned first_wrong = 0;
        size_t count = 0;

        if (dependent_list_from_answer(bound->text, &list) < 0)
                return run_finish(run, RESULT_RETRY, "no memory for the handler's answer");
        for (size_t i = 0; i < list.count; i++) {
                unsigned wrong = judge_bound(run, bound, &list.item[i]);

                if (!wrong)
                        continue;
                count++;
                add_advice(bound, &list.item[i], wrong, &advice);
                if (first && first->index < list.item[i].index)
                        continue;
                first = &list.item[i];
                first_wrong = wrong;
        }
        write_line(bound, &advice, &line);
        text_done(&advice.kinds);
        text_done(&advice.namespaces);
        return first ? refuse_bound(run, bound, first, first_wrong, count, &line) : 0;
}

int confine_answer(struct run *run)
{
        const struct bound children = {"children", false, run->answer.dependents_text},
                           patches = {"patches", true, run->answer.patches_text};
        bool is_reconcile = run->action == ACTION_RECONCILE;
        int r = 0;

        if ((is_reconcile || run->action == ACTION_UNSELECTED) && run->answer.dependents_text.start)
                r = confine(run, &children);
        return r < 0 || !is_reconcile || !run->answer.patches_text.start ? r : confine(run, &patches);
}

/* ---- lists on the object */

static bool knows(const struct record_kind *list, size_t count, const struct dependent *kind)
{
        for (size_t i = 0; i < count; i++) {
                struct dependent known = {.api_version = (char *)(uintptr_t)list[i].api_version,
                                          .kind = (char *)(uintptr_t)list[i].kind};

                if (dependent_is_same_kind(&known, kind))
                        return true;
        }
        return false;
}

bool confine_knows(const struct run *run, const char *api_version, const char *kind)
{
        const struct dependent wanted = {.api_version = (char *)(uintptr_t)api_version,
                                         .kind = (char *)(uintptr_t)kind};
        const char *at = run->order->kinds;
        struct child_kind entry;

        for (size_t i = 0; i < run->worker->watch_count; i++) {
                const struct record_watch *config = run->worker->watch[i].config;

                if (knows(config->child_kinds, config->child_kinds_count, &wanted) ||
                    knows(config->patched_kinds, config->patched_kinds_count, &wanted))
                        return true;
        }
        while (child_kinds_next(&at, &entry))
                if (child_kind_is(&entry, api_version, kind))
                        return true;
        return false;
}

static bool is_counted(const struct dependent_list *list, size_t count, const struct dependent *dependent)
{
        for (size_t i = 0; i < count; i++)
                if (list->item[i].stranger && dependent_is_same_kind(&list->item[i], dependent))
                        return true;
        return false;
}

/* Whether the configuration of a watch allows children of the object there, or patches, or the ledger's row knows some. */
static bool knows_namespace(const struct run *run, const struct dependent *dependent)
{
        const char *at = run->order->kinds;
        struct child_kind entry;

        for (size_t i = 0; i < run->worker->watch_count; i++)
                for (int is_patch = 0; is_patch < 2; is_patch++)
                        if (!(confined_judge(run->worker->watch[i].config, is_patch, run->order->key,
                                             dependent->api_version, dependent->kind,
                                             dependent->namespace_name) &
                              CONFINED_NAMESPACE))
                                return true;
        while (child_kinds_next(&at, &entry))
                if (child_kind_is(&entry, dependent->api_version, dependent->kind) &&
                    entry.namespace_name.size == strlen(dependent->namespace_name) &&
                    memcmp(entry.namespace_name.start, dependent->namespace_name,
                           entry.namespace_name.size) == 0)
                        return true;
        return false;
}

size_t confine_list(const struct run *run, struct dependent_list *list)
{
        size_t strangers = 0, beyond = 0;

        for (size_t i = 0; i < list->count; i++) {
                struct dependent *dependent = &list->item[i];

                if (!knows_namespace(run, dependent)) {
                        dependent->stranger = false;
                        dependent->beyond = true;
                        beyond++;
                        continue;
                }
                if (confine_knows(run, dependent->api_version, dependent->kind))
                        continue;
                dependent->stranger = is_counted(list, i, dependent) || strangers++ < STRANGERS_MAX;
                dependent->beyond = !dependent->stranger;
                beyond += dependent->beyond;
        }
        return beyond;
}

void confine_list_and_tell(const struct run *run, const char *what, struct dependent_list *list)
{
        size_t beyond = confine_list(run, list), first = 0;
        char name[600];

        if (beyond == 0 || run->order->attempt > 1) /* the first attempt has reported it */
                return;
        while (!list->item[first].beyond)
                first++;
        log_write(
                LOG_WARNING, MESSAGE_ID_STRANGE_KINDS,
                LOG_FIELDS({"RECONCILED_WATCH", run->order->watch}, {"RECONCILED_KEY", run->order->key},
                           {"RECONCILED_UID", run->order->uid}),
                "watch %s, %s: %zu %s of its list of %s, like %s, %s left alone: the list names namespaces, or more "
                "than %d kinds, that neither the configuration nor the state folder knows, so somebody else may have "
                "written it; if they are its %s, add their kinds and namespaces to the configuration",
                run->order->watch, run->order->key, beyond, counted(beyond, "entry", "entries"), what,
                dependent_describe(&list->item[first], name, sizeof(name)), counted(beyond, "is", "are"),
                STRANGERS_MAX, what);
}
