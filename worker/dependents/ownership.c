/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See ownership.h. The value of a mark is Kind.group/NAMESPACE/NAME/UID/ID/Kind.group/NAMESPACE/NAME: the owner, the id of
 * the watch, the child. No part has a slash.
 */
#include "worker/dependents/ownership.h"

#include <errno.h>
#include <string.h>

#include "object/bookkeeping.h"

/* ---- the mark */

static void write_owner(const struct dependent_owner *owner, struct text *out)
{
        const char *slash = strchr(owner->api_version, '/');

        text_printf(out, "%s%s%.*s/%s/%s/", owner->kind, slash ? "." : "",
                    slash ? (int)(slash - owner->api_version) : 0, owner->api_version, owner->namespace_name,
                    owner->name);
}

static void append_child_name(const struct dependent *dependent, struct text *out)
{
        const char *slash = strchr(dependent->api_version, '/');

        text_printf(out, "/%s%s%.*s/%s/%s", dependent->kind, slash ? "." : "",
                    slash ? (int)(slash - dependent->api_version) : 0, dependent->api_version,
                    dependent->namespace_name, dependent->name);
}

/* Groups in which the API server has served one and the same object. */
static const char *const alias[][3] = {
        {"Ingress", "extensions", "networking.k8s.io"},
        {"NetworkPolicy", "extensions", "networking.k8s.io"},
        {"Deployment", "extensions", "apps"},
        {"DaemonSet", "extensions", "apps"},
        {"ReplicaSet", "extensions", "apps"},
        {"PodSecurityPolicy", "extensions", "policy"},
        {"Event", "", "events.k8s.io"},
};

/* Writes how a mark names the child in the other group that serves it. false: there is none. */
static bool write_alias(const struct dependent *dependent, struct text *out)
{
        const char *slash = strchr(dependent->api_version, '/');
        size_t size = slash ? (size_t)(slash - dependent->api_version) : 0;

        for (size_t i = 0; i < ELEMENTS(alias); i++)
                for (size_t own = 1; own < ELEMENTS(alias[i]); own++) {
                        const char *other = alias[i][own == 1 ? 2 : 1];

                        if (strcmp(alias[i][0], dependent->kind) != 0 || strlen(alias[i][own]) != size ||
                            strncmp(alias[i][own], dependent->api_version, size) != 0)
                                continue;
                        return text_printf(out, "/%s%s%s/%s/%s", dependent->kind, other[0] ? "." : "", other,
                                           dependent->namespace_name, dependent->name) >= 0;
                }
        return false;
}

void ownership_mark(const struct dependent_owner *owner, const struct dependent *dependent, struct text *out)
{
        write_owner(owner, out);
        text_printf(out, "%s/%s", owner->uid, owner->id ? owner->id : "");
        append_child_name(dependent, out);
}

struct mark {
        bool is_made, is_former; /* of a former name of the operator */
        bool of_owner;           /* by name */
        char uid[IDENTITY_UID_MAX + 1];
};

struct mark_search {
        struct span value[4]; /* of made, of adopted; likewise under a former name */
        struct span other;    /* of a mark that another operator has set */
};

static bool is_key(struct span key, const char *operator_name, const char *name)
{
        char text[300];

        snprintf(text, sizeof(text), "%s/%s", operator_name, name);
        return scan_string_equals(key, text);
}

static bool is_former_key(const struct dependent_owner *owner, struct span key, const char *name)
{
        const char *list = owner->former_names ? owner->former_names : "";
        char former[200];

        while (bookkeeping_next_word(&list, former, sizeof(former)))
                if (is_key(key, former, name))
                        return true;
        return false;
}

static bool search_marks(const struct dependent_owner *owner, const struct scan_object *object,
                         struct mark_search *search)
{
        struct scan_walk walk;

        SCAN_MEMBERS(walk, object->annotations) {
                if (is_key(walk.key, owner->operator_name, MADE_NAME))
                        search->value[0] = walk.value;
                else if (is_key(walk.key, owner->operator_name, ADOPTED_NAME))
                        search->value[1] = walk.value;
                else if (is_former_key(owner, walk.key, MADE_NAME))
                        search->value[2] = walk.value;
                else if (is_former_key(owner, walk.key, ADOPTED_NAME))
                        search->value[3] = walk.value;
                else if (bookkeeping_is_key(walk.key, NULL, MADE_NAME) ||
                         bookkeeping_is_key(walk.key, NULL, ADOPTED_NAME))
                        search->other = walk.value;
        }
        return walk.status >= 0;
}

bool ownership_is_marked(const struct dependent_owner *owner, struct span text)
{
        struct mark_search search = {0};
        struct scan_object object;

        return scan_object(text.start, text.size, &object) >= 0 && search_marks(owner, &object, &search) &&
               (search.value[0].start || search.value[1].start || search.value[2].start ||
                search.value[3].start);
}

/* Cuts the text at its last slash; returns what comes after it, or NULL. */
static char *cut_last(char *text)
{
        char *slash = strrchr(text, '/');

        if (!slash)
                return NULL;
        *slash = '\0';
        return slash + 1;
}

/* "Widget.example.com/default/a" for people. */
static void describe_holder(const char *owner, struct ownership_view *view)
{
        const char *space = strchr(owner, '/');

        if (!space)
                return;
        snprintf(view->holder, sizeof(view->holder), "it is a child of %.*s %s", (int)(space - owner), owner,
                 space[1] == '/' ? space + 2 : space + 1);
}

/* Cuts the child off the value. False if it names another child, or none. */
static bool cut_child(const struct dependent *dependent, char *value)
{
        _cleanup_text_ struct text name = TEXT_EMPTY, other = TEXT_EMPTY;
        size_t size = strlen(value);
        const struct text *end = &name;

        append_child_name(dependent, &name);
        if (!name.failed && (size < name.size || strcmp(value + size - name.size, name.data) != 0))
                end = write_alias(dependent, &other) ? &other : NULL;
        if (!end || end->failed || size < end->size || strcmp(value + size - end->size, end->data) != 0)
                return false;
        value[size - end->size] = '\0';
        return true;
}

/* Returns false: this is no mark of this very child. */
static bool read_mark(const struct dependent_owner *owner, const struct dependent *dependent, char *value,
                      struct mark *mark, struct ownership_view *view)
{
        _cleanup_text_ struct text own = TEXT_EMPTY;
        char *id, *uid;

        write_owner(owner, &own);
        if (own.failed || !cut_child(dependent, value))
                return false;
        id = cut_last(value);
        uid = cut_last(value);
        if (!id || !uid || strlen(uid) > IDENTITY_UID_MAX || strlen(id) >= sizeof(view->id))
                return false;
        snprintf(mark->uid, sizeof(mark->uid), "%s", uid);
        snprintf(view->id, sizeof(view->id), "%s", id);
        own.data[own.size - 1] = '\0';
        mark->of_owner = strcmp(value, own.data) == 0;
        describe_holder(value, view);
        return true;
}

static bool find_mark(const struct dependent_owner *owner, const struct dependent *dependent,
                      const struct scan_object *object, struct mark *mark, struct ownership_view *view)
{
        struct mark_search search = {0};

        if (!search_marks(owner, object, &search))
                return false;
        for (size_t i = 0; i < ELEMENTS(search.value); i++) {
                _cleanup_free_ char *value = NULL;

                mark->is_made = i % 2 == 0;
                mark->is_former = i >= 2;
                if (search.value[i].start && scan_string(search.value[i], &value) >= 0 &&
                    read_mark(owner, dependent, value, mark, view))
                        return true;
        }
        return false;
}

/* Two operators may watch one kind: a child that one of them made for an object is no child of the other. */
static bool is_of_other_operator(const struct dependent_owner *owner, const struct dependent *dependent,
                                 const struct scan_object *object)
{
        struct mark_search search = {0};
        struct ownership_view view;
        struct mark mark;
        _cleanup_free_ char *value = NULL;

        return search_marks(owner, object, &search) && search.other.start &&
               scan_string(search.other, &value) >= 0 && read_mark(owner, dependent, value, &mark, &view);
}

/* ---- owner references */

struct reference_search {
        const char *ours, *former; /* UIDs; former "": there is none */
        bool is_ours, is_former, others, controlled;
        bool is_written; /* by us, and by no other operator of this kind */
        char controller[300];
};

static int look_at_reference(struct span element, struct reference_search *search)
{
        struct span kind = {0}, name = {0}, uid = {0}, controller = {0};
        const struct scan_wanted wanted[] = {
                {"kind", &kind}, {"name", &name}, {"uid", &uid}, {"controller", &controller}};
        _cleanup_free_ char *kind_text = NULL, *name_text = NULL;
        int r = element.start[0] == '{' ? scan_find(element, wanted, ELEMENTS(wanted)) : 0;

        if (r < 0 || !uid.start)
                return r;
        if (scan_string_equals(uid, search->ours)) {
                search->is_ours = true;
                return 0;
        }
        if (search->former[0] && scan_string_equals(uid, search->former)) {
                search->is_former = true;
                return 0;
        }
        search->others = true;
        if (!scan_is_true(controller))
                return 0;
        search->controlled = true;
        if (scan_string(kind, &kind_text) >= 0 && scan_string(name, &name_text) >= 0)
                snprintf(search->controller, sizeof(search->controller), "%s %s controls it", kind_text,
                         name_text);
        return 0;
}

/* ---- who else has written to it */

#define NOT_CREATED "this operator has not created it"

/* Whether this operator is a manager of the object: its mark may have been taken off. */
static bool is_written_by_us(const struct dependent_owner *owner, const struct scan_object *object)
{
        struct scan_walk walk;

        SCAN_ELEMENTS(walk, object->managed_fields) {
                struct span manager = scan_get(walk.value, "manager");

                if (scan_string_equals(manager, owner->operator_name) ||
                    bookkeeping_has_word(owner->former_names, manager))
                        return true;
        }
        return false;
}

static void describe_managers(const struct scan_object *object, struct ownership_view *view)
{
        size_t size = sizeof(view->holder), used = 0;
        struct scan_walk walk;

        snprintf(view->holder, size, NOT_CREATED);
        SCAN_ELEMENTS(walk, object->managed_fields) {
                _cleanup_free_ char *name = NULL;

                if (scan_string(scan_get(walk.value, "manager"), &name) < 0 || strstr(view->holder, name))
                        continue;
                used += (size_t)snprintf(view->holder + used, size - used, "%s%s",
                                         used > 0 ? ", " : NOT_CREATED ": it was written by ", name);
                if (used >= size)
                        used = size - 1;
        }
}

void ownership_last_writer(const struct dependent_owner *owner, const char *json, char *buffer, size_t size)
{
        struct scan_object object;
        struct scan_walk walk;
        char last[64] = "";

        snprintf(buffer, size, "by whom is unknown");
        if (scan_object(json, strlen(json), &object) < 0)
                return;
        SCAN_ELEMENTS(walk, object.managed_fields) {
                _cleanup_free_ char *manager = NULL, *time = NULL;

                if (scan_get(walk.value, "subresource").start ||
                    scan_string(scan_get(walk.value, "manager"), &manager) < 0 ||
                    scan_string(scan_get(walk.value, "time"), &time) < 0 ||
                    strcmp(manager, owner->operator_name) == 0 || strcmp(time, last) < 0)
                        continue;
                snprintf(last, sizeof(last), "%s", time);
                snprintf(buffer, size, "by %s", manager);
        }
}

/* ---- the judgement */

static enum ownership judge_ownership(const struct dependent_owner *owner, bool is_marked,
                                      const struct mark *mark, const struct reference_search *found,
                                      const struct ownership_view *view)
{
        if (found->controlled || (is_marked && !mark->of_owner))
                return OWNERSHIP_FOREIGN;
        if (!is_marked)
                return found->is_written && found->is_ours ? OWNERSHIP_OURS : OWNERSHIP_FOREIGN;
        if (strcmp(mark->uid, owner->uid) != 0)
                return found->is_former ? OWNERSHIP_FALLEN : OWNERSHIP_FORMER;
        return strcmp(view->id, owner->id ? owner->id : "") == 0 ? OWNERSHIP_OURS : OWNERSHIP_TWIN;
}

int ownership_judge(const struct dependent_owner *owner, const struct dependent *dependent, const char *json,
                    size_t size, struct ownership_view *ret)
{
        struct ownership_view view = {0};
        struct reference_search found = {.ours = owner->uid, .former = ""};
        struct scan_object object;
        struct scan_walk walk;
        struct mark mark = {0};
        size_t uid_size = 0, version_size = 0;
        bool is_marked, is_taken;
        int r = scan_object(json, size, &object);

        if (r >= 0)
                r = scan_string_into(object.uid, view.uid, IDENTITY_UID_MAX, &uid_size);
        if (r >= 0)
                r = scan_string_into(object.resource_version, view.version, IDENTITY_VERSION_MAX,
                                     &version_size);
        if (r < 0 || uid_size == 0 || version_size == 0)
                return r == -ENOMEM ? r : -EBADMSG;
        is_marked = find_mark(owner, dependent, &object, &mark, &view);
        if (is_marked && mark.of_owner && strcmp(mark.uid, owner->uid) != 0)
                found.former = mark.uid;
        SCAN_ELEMENTS(walk, object.owner_references) {
                r = look_at_reference(walk.value, &found);
                if (r < 0)
                        return r;
        }
        if (walk.status < 0)
                return walk.status;
        is_taken = !is_marked && is_of_other_operator(owner, dependent, &object);
        found.is_written = !is_taken && is_written_by_us(owner, &object);
        view.whose = judge_ownership(owner, is_marked, &mark, &found, &view);
        view.made = is_marked && mark.is_made && mark.of_owner;
        view.renamed = is_marked && mark.is_former;
        view.claimed = is_taken || found.controlled || (is_marked && !mark.of_owner);
        view.shared = found.others;
        view.referred = found.is_ours;
        view.going = object.deletion_timestamp.start != NULL;
        if (found.controlled && (!is_marked || mark.of_owner))
                snprintf(view.holder, sizeof(view.holder), "it is not ours: %s", found.controller);
        else if (is_taken)
                snprintf(view.holder, sizeof(view.holder), "another operator has it, as its mark says");
        else if (!is_marked)
                describe_managers(&object, &view);
        *ret = view;
        return 0;
}
