/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/ctl-plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/exit-code.h"
#include "base/short-hash.h"
#include "base/text.h"
#include "config/config.h"
#include "ctl/check/ctl-check.h"
#include "ctl/check/unit.h"
#include "ctl/ctl-answer.h"
#include "ctl/output/output.h"
#include "ctl/session/ctl-run.h"
#include "ctl/session/file-server.h"
#include "ctl/session/plan-groups.h"
#include "ctl/session/plan-objects.h"
#include "ctl/session/session.h"
#include "ctl/session/written.h"
#include "ipc/message.h"
#include "json/difference.h"
#include "json/json.h"

#define EXIT_CODE_CHANGES 2
#define NAMES_SHOWN       5  /* of a group */
#define VALUE_SHOWN       80 /* bytes of a value */
#define VALUE_LED         16 /* of them, before the place where two values differ */
#define LINES_SHOWN       60 /* of a group, to people */
#define NAME_LEAST        2

/* The worst that is known about an object. */
enum plan_class { PLAN_UNCHANGED, PLAN_CHANGES, PLAN_UNKNOWN, PLAN_FAILED, PLAN_CLASS_COUNT };

struct plan_report {
        const char *operator_name;
        size_t count[PLAN_CLASS_COUNT], gone;
        struct plan_groups groups;
        cJSON *other; /* list of {key, what, why}: what is unknown, and what failed */
        cJSON *early; /* exchanges of a run from before its line: our finalizer is put on */
        /* of the run that is read */
        struct seen seen;
        struct text changes;
        char *key;
        const char *why; /* it is unknown, in words */
        char *refused;   /* the server's words to the last write that it refused; NULL */
        bool makes_namespace, lacks_namespace;
};

/* ---- one run */

static bool is_name_byte(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
}

/* Objects whose changes differ by their own names alone are one group. */
static void append_anonymous(const struct plan_report *report, struct text *out, const char *text)
{
        const char *slash = strchr(report->key, '/'), *name = slash ? slash + 1 : report->key, *at = text;
        size_t size = strlen(name);

        while ((at = strstr(at, name))) {
                bool whole = (at == text || !is_name_byte(at[-1])) && !is_name_byte(at[size]);

                text_append(out, text, (size_t)(at - text));
                text_append_string(out, whole ? "NAME" : name);
                at += size;
                text = at;
        }
        text_append_string(out, text);
}

/* Where lists of ours are taken away, an empty one may be left. */
static bool is_nothing_written(const char *path, const cJSON *value)
{
        bool is_list_of_ours =
                strcmp(path, "metadata.finalizers") == 0 || strcmp(path, "status.conditions") == 0;

        return !value || cJSON_IsNull(value) || (is_list_of_ours && cJSON_IsArray(value) && !value->child);
}

struct leaves {
        const struct plan_report *report;
        struct text text;
        bool notes; /* the operator's own labels and annotations differ */
};

/* The beginning of the character at this byte. */
static size_t character_at(const char *text, size_t at)
{
        while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80)
                at--;
        return at;
}

/* Long values are cut around the place where they differ. Their hash keeps groups apart that look alike then. */
static void append_cut(struct text *out, const char *json, size_t from)
{
        size_t size = strlen(json),
               begin = character_at(json, from > VALUE_LED && from < size ? from - VALUE_LED : 0);
        size_t end = size - begin > VALUE_SHOWN ? character_at(json, begin + VALUE_SHOWN) : size;

        if (size <= VALUE_SHOWN)
                text_append_string(out, json);
        else
                text_printf(out, "%s%.*s%s (%zu bytes, hash %08x)", begin > 0 ? "..." : "",
                            (int)(end - begin), json + begin, end < size ? "..." : "", size,
                            (unsigned)XXH3_64bits(json, size));
}

/* In values a short name says nothing: "a" and "1" are everywhere. */
static void append_value(struct leaves *leaves, const char *sign, const char *path, const char *json,
                         size_t from)
{
        const char *slash = strchr(leaves->report->key, '/');
        bool is_telling = strlen(slash ? slash + 1 : leaves->report->key) >= NAME_LEAST;
        _cleanup_text_ struct text whole = TEXT_EMPTY, cut = TEXT_EMPTY;

        if (!json)
                return;
        if (is_telling)
                append_anonymous(leaves->report, &whole, json);
        else
                text_append_string(&whole, json);
        append_cut(&cut, whole.data ? whole.data : "", from);
        text_printf(&leaves->text, "    %s %s: %s\n", sign, path, cut.data ? cut.data : "");
}

/* The operator's own labels and annotations, whose values differ from object to object. */
static bool is_own_note_at(const struct plan_report *report, const char *path)
{
        const char *quoted = strncmp(path, "metadata.", 9) == 0 ? strstr(path, "[\"") : NULL;
        size_t size = strlen(report->operator_name);

        return quoted &&
               (strncmp(quoted + 2, "applyset.k8s.io/", 16) == 0 ||
                (strncmp(quoted + 2, report->operator_name, size) == 0 && quoted[2 + size] == '/'));
}

/* These change with the operator's release and with the clock. */
static bool is_no_news(const char *path)
{
        return strstr(path, "applyset.k8s.io/tooling") || ends_with(path, "lastTransitionTime");
}

static void on_difference(const char *path, const cJSON *before, const cJSON *after, void *userdata)
{
        struct leaves *leaves = userdata;
        _cleanup_free_ char *old = NULL, *new = NULL;
        size_t same = 0;

        if (is_no_news(path) || (is_nothing_written(path, before) && is_nothing_written(path, after)))
                return;
        if (is_own_note_at(leaves->report, path)) {
                leaves->notes = true;
                return;
        }
        old = is_nothing_written(path, before) ? NULL : cJSON_PrintUnformatted(before);
        new = is_nothing_written(path, after) ? NULL : cJSON_PrintUnformatted(after);
        while (old && new &&old[same] && old[same] == new[same])
                same++;
        append_value(leaves, "-", path, old, same);
        append_value(leaves, "+", path, new, same);
}

/* "ConfigMap NAME-c", with the namespace where it is not that of the object. */
static void append_object(const struct plan_report *report, struct text *out, const cJSON *object)
{
        const cJSON *metadata = json_member(object, "metadata");
        const char *name = json_text(metadata, "name"), *namespace_name = json_text(metadata, "namespace");
        size_t own = strcspn(report->key, "/");
        bool is_elsewhere = namespace_name[0] && (report->key[own] != '/' || strlen(namespace_name) != own ||
                                                  strncmp(report->key, namespace_name, own) != 0);

        text_printf(out, "%s %s%s", json_text(object, "kind"), is_elsewhere ? namespace_name : "",
                    is_elsewhere ? "/" : "");
        append_anonymous(report, out, name[0] ? name : json_text(metadata, "generateName"));
}

/* What is new is shown without what the server sets and what everybody knows about it. */
static void on_new(const char *path, const cJSON *before _unused_, const cJSON *after, void *userdata)
{
        static const char *const known[] = {"kind", "apiVersion", "metadata.name", "metadata.namespace",
                                            "metadata.ownerReferences"};

        for (size_t i = 0; i < ELEMENTS(known); i++)
                if (strncmp(path, known[i], strlen(known[i])) == 0 && !is_name_byte(path[strlen(known[i])]))
                        return;
        on_difference(path, NULL, after, userdata);
}

/* Returns whether what differs is hidden. */
static bool find_leaves(const struct written *written, struct leaves *leaves)
{
        if (written->is_new)
                (void)difference_visit(NULL, written->after, on_new, leaves);
        else if (written->before) /* else the request shows the change */
                (void)difference_visit(written->before, written->after, on_difference, leaves);
        else
                (void)difference_visit(NULL, written->sent, on_difference, leaves);
        if (leaves->notes && !written->is_new)
                text_append_string(&leaves->text, "    the operator's own labels or annotations\n");
        return !written->is_new && leaves->text.size == 0 && written->redacted && !written->redacted_equal;
}

static void note_change(struct plan_report *report, const struct written *written)
{
        struct leaves leaves = {.report = report};
        bool is_hidden = find_leaves(written, &leaves);

        if (written->is_new || leaves.text.size > 0 || is_hidden) {
                text_append_string(&report->changes, written->is_new ? "+ create " : "~ change ");
                append_object(report, &report->changes, written->after);
                text_printf(&report->changes, "%s\n%s",
                            !written->is_new && written->subresource[0] ? ", its status" : "",
                            leaves.text.data ? leaves.text.data : "");
        }
        if (is_hidden)
                text_append_string(&report->changes, "    confidential content, which is not shown\n");
        report->makes_namespace =
                report->makes_namespace ||
                (written->is_new && strcmp(json_text(written->after, "kind"), "Namespace") == 0);
        text_done(&leaves.text);
}

static void note_deletion(struct plan_report *report, const struct written *written)
{
        text_append_string(&report->changes, "- delete ");
        if (written->before)
                append_object(report, &report->changes, written->before);
        else
                append_anonymous(report, &report->changes, written->path);
        text_append_string(&report->changes, "\n");
}

static int note_refusal(struct plan_report *report, const struct written *written)
{
        free(report->refused);
        report->lacks_namespace = report->lacks_namespace || written->status == 404;
        report->refused = format_string("%s %s is refused (HTTP %d): %s", written->method, written->path,
                                        written->status, written->error);
        return report->refused ? 0 : -ENOMEM;
}

/* NULL: it can be told. */
static const char *why_untold(const struct written *written)
{
        if (written->after && (!cJSON_IsObject(written->after) || !json_text(written->after, "kind")[0]))
                return "the server's answer to a write is no object";
        if (written->after && !written->is_new && !written->before && written->redacted)
                return "a confidential object was not seen before it was written";
        if (written->partial && (json_member(written->sent, "spec") || json_member(written->sent, "status")))
                return "the watch fetches metadata alone, so nobody knows what a write would change";
        return NULL;
}

static void plan_write(const struct written *written, void *userdata)
{
        struct plan_report *report = userdata;
        const char *why;

        if (strstr(written->path, "/events/"))
                return; /* they come after the end of their run, and are news, not state */
        if (written->status / 100 != 2) {
                (void)note_refusal(report, written);
                return;
        }
        why = why_untold(written);
        if (why)
                report->why = why;
        else if (written->after)
                note_change(report, written);
        else
                note_deletion(report, written);
}

static void add_other(struct plan_report *report, const char *what, const char *why)
{
        cJSON *other = cJSON_CreateObject();

        cJSON_AddStringToObject(other, "key", report->key);
        cJSON_AddStringToObject(other, "what", what);
        cJSON_AddStringToObject(other, "why", why);
        cJSON_AddItemToArray(report->other, other);
}

/* What depends on a write that was only tried cannot be known. NULL: it is known. */
static const char *unknown_because(const struct plan_report *report, const char *result)
{
        if (report->makes_namespace && report->lacks_namespace)
                return "what comes into the namespace that would be made";
        if (strcmp(result, run_result_name(RESULT_STALE)) == 0)
                return "the server says that it is gone";
        if (strcmp(result, run_result_name(RESULT_CONFLICT)) == 0)
                return "the handler would run again, and see what was written";
        if (strcmp(result, run_result_name(RESULT_SETTLING)) == 0 && !report->refused)
                return "what follows when its children are ready";
        return report->why;
}

static int plan_end(struct plan_report *report, const cJSON *line)
{
        const char *result = json_text(line, "result"), *message = json_text(line, "message");
        const char *unknown = unknown_because(report, result);
        bool is_success = strcmp(result, run_result_name(RESULT_SUCCESS)) == 0;
        enum plan_class class = unknown                    ? PLAN_UNKNOWN
                                : !is_success              ? PLAN_FAILED
                                : report->changes.size > 0 ? PLAN_CHANGES
                                                           : PLAN_UNCHANGED;

        if (strcmp(result, run_result_name(RESULT_STALE)) == 0 && !report->refused) {
                report->gone++;
                return 0;
        }
        report->count[class]++;
        if (class == PLAN_UNKNOWN)
                add_other(report, "unknown", unknown);
        else if (class == PLAN_FAILED)
                add_other(report, "failed",
                          strcmp(result, run_result_name(RESULT_SETTLING)) == 0 ? report->refused : message);
        return class == PLAN_CHANGES ? plan_groups_add(&report->groups, report->changes.data, report->key)
                                     : 0;
}

static int plan_begin(struct plan_report *report, const cJSON *line)
{
        const cJSON *each;
        int r;

        free(report->key);
        report->key = strdup(json_text(line, "key"));
        text_clear(&report->changes);
        report->why = NULL;
        free(TAKE_PTR(report->refused));
        report->makes_namespace = report->lacks_namespace = false;
        r = report->key ? seen_begin(&report->seen, true) : -ENOMEM;
        if (r >= 0)
                r = seen_take_line(&report->seen, line, "run", plan_write, report);
        cJSON_ArrayForEach(each, report->early) if (r >= 0) r =
                seen_take_line(&report->seen, each, "exchange", plan_write, report);
        cJSON_Delete(report->early);
        report->early = cJSON_CreateArray();
        return report->early ? r : -ENOMEM;
}

static int plan_line(const cJSON *line, const char *type, void *userdata)
{
        struct plan_report *report = userdata;

        if (strcmp(type, "run") == 0)
                return plan_begin(report, line);
        if (!report->key) {
                if (strcmp(type, "exchange") == 0)
                        cJSON_AddItemToArray(report->early, cJSON_Duplicate(line, true));
                return 0;
        }
        if (strcmp(type, "end") == 0) {
                int r = plan_end(report, line);

                free(TAKE_PTR(report->key));
                return r;
        }
        return seen_take_line(&report->seen, line, type, plan_write, report);
}

/* ---- what is told */

static size_t count_all(const struct plan_report *report)
{
        size_t count = 0;

        for (enum plan_class class = 0; class < PLAN_CLASS_COUNT; class ++)
                count += report->count[class];
        return count;
}

static void print_names(const struct plan_group *group)
{
        _cleanup_text_ struct text line = TEXT_EMPTY;

        for (size_t i = 0; i < group->count && i < NAMES_SHOWN; i++)
                text_printf(&line, "%s%s", i > 0 ? ", " : "", group->key[i]);
        if (group->count > NAMES_SHOWN)
                text_printf(&line, " and %zu more", group->count - NAMES_SHOWN);
        ctl_line("%zu object%s: %s", group->count, group->count == 1 ? "" : "s", line.data ? line.data : "");
}

static void print_text(const char *lines)
{
        size_t more = 0;

        for (size_t i = 0; *lines; i++) {
                int size = (int)strcspn(lines, "\n");

                if (i < LINES_SHOWN)
                        ctl_line("  %.*s", size, lines);
                else
                        more++;
                lines += size + (lines[size] == '\n');
        }
        if (more > 0)
                printf("  and %zu more lines (--json)\n", more);
}

static void plan_print_people(const struct plan_report *report, struct plan_group *const *group)
{
        const cJSON *each;

        for (size_t i = 0; i < report->groups.count; i++) {
                print_names(group[i]);
                print_text(group[i]->changes);
                puts("");
        }
        cJSON_ArrayForEach(each, report->other) ctl_line("%s: %s: %s", json_text(each, "key"),
                                                         json_text(each, "what"), json_text(each, "why"));
        if (report->gone > 0)
                printf("%zu gone meanwhile\n", report->gone);
        printf("%zu object%s, %zu unchanged, %zu change, %zu unknown, %zu fail\n", count_all(report),
               count_all(report) == 1 ? "" : "s", report->count[PLAN_UNCHANGED], report->count[PLAN_CHANGES],
               report->count[PLAN_UNKNOWN], report->count[PLAN_FAILED]);
}

static cJSON *json_of_group(const struct plan_group *group)
{
        cJSON *json = cJSON_CreateObject(), *objects = cJSON_AddArrayToObject(json, "objects");

        for (size_t i = 0; i < group->count; i++)
                cJSON_AddItemToArray(objects, cJSON_CreateString(group->key[i]));
        cJSON_AddStringToObject(json, "changes", group->changes);
        return json;
}

static void plan_print_json(const struct plan_report *report, struct plan_group *const *group)
{
        static const char *const name[PLAN_CLASS_COUNT] = {"unchanged", "change", "unknown", "fail"};
        _cleanup_json_ cJSON *answer = cJSON_CreateObject();
        cJSON *groups;

        cJSON_AddNumberToObject(answer, "objects", (double)count_all(report));
        for (enum plan_class class = 0; class < PLAN_CLASS_COUNT; class ++)
                cJSON_AddNumberToObject(answer, name[class], (double)report->count[class]);
        cJSON_AddNumberToObject(answer, "gone", (double)report->gone);
        groups = cJSON_AddArrayToObject(answer, "groups");
        for (size_t i = 0; i < report->groups.count; i++)
                cJSON_AddItemToArray(groups, json_of_group(group[i]));
        cJSON_AddItemToObject(answer, "others", cJSON_Duplicate(report->other, true));
        (void)ctl_print_json(answer);
}

/* ---- the command */

static bool read_plan_limit(const char *text, size_t *ret)
{
        char *end;

        *ret = SIZE_MAX;
        if (!text)
                return true;
        errno = 0;
        *ret = strtoul(text, &end, 10);
        return is_digit(text[0]) && *end == '\0' && errno == 0 && *ret > 0;
}

static bool read_plan_gate(const char *text, double *ret)
{
        char *end;

        *ret = 0;
        if (!text)
                return true;
        *ret = strtod(text, &end);
        return is_digit(text[0]) && strspn(text, "0123456789.") == (size_t)(end - text) &&
               strcmp(end, "%") == 0 && *ret <= 100;
}

static int plan_exit_code(const struct plan_report *report, double gate)
{
        if (report->count[PLAN_FAILED] + report->count[PLAN_UNKNOWN] > 0)
                return EXIT_CODE_FAILED;
        return (double)report->count[PLAN_CHANGES] * 100 <= gate * (double)count_all(report)
                       ? EXIT_CODE_OK
                       : EXIT_CODE_CHANGES;
}

static int set_variable(struct config_handler *handler, const char *name, const char *value)
{
        struct config_pair *grown, added;

        FOREACH_ARRAY(pair, handler->environment, handler->environment_count)
                if (strcmp(pair->name, name) == 0)
                        return text_replace(&pair->value, value);
        added = (struct config_pair){strdup(name), strdup(value)};
        grown = added.name && added.value
                        ? reallocarray(handler->environment, handler->environment_count + 1, sizeof(*grown))
                        : NULL;
        if (!grown) {
                free(added.name);
                free(added.value);
                return -ENOMEM;
        }
        handler->environment = grown;
        grown[handler->environment_count++] = added;
        return 0;
}

/* Handlers get no credentials: nobody is to be asked but the server, and that by us. */
static int withhold_credentials(struct config *config)
{
        int r = 0;

        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                struct config_handler *handler = &watch->handler;

                while (handler->credentials_count > 0) {
                        free(handler->credentials[--handler->credentials_count].name);
                        free(handler->credentials[handler->credentials_count].value);
                }
                handler->kubernetes = false;
                free(TAKE_PTR(handler->kubernetes_account));
                if (r >= 0)
                        r = set_variable(handler, "KUBECONFIG", NO_HOME "/kubeconfig");
                if (r >= 0)
                        r = set_variable(handler, "HOME", NO_HOME);
        }
        return r;
}

/* The file is cut after each run, as it may be one of 100,000. */
static int take_run(const struct session *session, bool is_over, void *userdata)
{
        const char *path = session_trace_path(session);
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        _cleanup_free_ char *text = NULL;
        size_t allocated = 0;
        int r = file ? 0 : -errno;

        while (r >= 0 && is_over && getline(&text, &allocated, file) > 0)
                r = trace_visit(text, plan_line, userdata);
        return r >= 0 && truncate(path, 0) < 0 ? -errno : r;
}

/* The cluster is a server in memory, which has these objects. */
static int start_server_for(struct session *session, struct plan_objects *objects,
                            const struct config_watch *watch, struct try_server *server)
{
        _cleanup_free_ char *path = format_string("%s/objects.yaml", session_folder(session));
        const char *const file[] = {path, NULL};
        int r = path ? plan_objects_write(objects, path) : -ENOMEM;

        if (r >= 0)
                r = file_server_start(server, session_folder(session), file, watch);
        if (r < 0 && r != -EIO)
                fprintf(stderr, "reconciledctl: the server in memory cannot be started: %s\n", strerror(-r));
        session_use_kubeconfig(session, server->kubeconfig);
        return r;
}

static int run_plan(const struct session_options *options, const char *object)
{
        _cleanup_(plan_objects_free_pointer) struct plan_objects *objects = NULL;
        _cleanup_(session_free_pointer) struct session *session = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        struct try_server server = {0};
        int r = object ? plan_objects_read(object, &objects, &error) : 0;
        bool is_read = r >= 0;

        if (r >= 0)
                r = session_new(options, &session, &error);
        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s\n", error_message(&error));
                return !is_read           ? EXIT_CODE_USAGE
                       : r == -EOPNOTSUPP ? EXIT_CODE_CONFIGURATION
                                          : EXIT_CODE_SOFTWARE;
        }
        r = objects ? start_server_for(session, objects, options->watch, &server) : 0;
        r = r < 0 ? EXIT_CODE_USAGE : session_run(session);
        try_server_end(&server);
        return r;
}

static int show_plan(const struct plan_report *report, bool json)
{
        _cleanup_free_ struct plan_group **group = plan_groups_list(&report->groups);

        if (!group)
                return -ENOMEM;
        if (json)
                plan_print_json(report, group);
        else
                plan_print_people(report, group);
        return 0;
}

static int tell_plan(struct session_options *session_options, const struct plan_options *options,
                     double gate)
{
        struct plan_report report = {.operator_name = session_options->config->operator_name,
                                     .other = cJSON_CreateArray(),
                                     .early = cJSON_CreateArray()};
        int r;

        session_options->on_run = take_run;
        session_options->userdata = &report;
        r = run_plan(session_options, options->object);
        if (r == EXIT_CODE_OK && count_all(&report) + report.gone == 0)
                fprintf(stderr, "reconciledctl: note: there is no %s (%s) that the watch %s selects\n",
                        session_options->watch->kind, session_options->watch->api_version,
                        session_options->watch->name);
        if (r == EXIT_CODE_OK)
                r = show_plan(&report, options->json) < 0 ? EXIT_CODE_SOFTWARE
                                                          : plan_exit_code(&report, gate);
        plan_groups_done(&report.groups);
        cJSON_Delete(report.other);
        cJSON_Delete(report.early);
        seen_done(&report.seen);
        text_done(&report.changes);
        free(report.key);
        free(report.refused);
        return r;
}

int ctl_plan(const struct plan_options *options)
{
        _cleanup_(config_free_pointer) struct config *config = NULL;
        _cleanup_(unit_credential_done) struct unit_credential unit = {0};
        _cleanup_error_ struct error error = ERROR_NONE;
        struct session_options session_options = {
                .selector = options->selector,
                .runtime_directory = options->object ? NULL : options->runtime_directory};
        double gate;
        int r, status;

        if (!read_plan_limit(options->limit, &session_options.limit) ||
            !read_plan_gate(options->gate, &gate)) {
                fputs("reconciledctl: --limit takes a number from 1 on, --gate a percentage like 5%\n",
                      stderr);
                return EXIT_CODE_USAGE;
        }
        status = unit_credential_find(options->config, &unit, &error);
        unit_credential_use(&unit);
        session_options.config = config = ctl_load_config(options->config);
        if (!config)
                return EXIT_CODE_CONFIGURATION;
        session_options.watch = ctl_find_watch(config, options->watch);
        if (!session_options.watch || !ctl_may_try(session_options.watch, options->run_anyway))
                return EXIT_CODE_USAGE;
        if (withhold_credentials(config) < 0)
                return EXIT_CODE_SOFTWARE;
        r = options->object ? 0 : ctl_use_unit(config, &unit, status, &error);
        return r != 0 ? r : tell_plan(&session_options, options, gate);
}
