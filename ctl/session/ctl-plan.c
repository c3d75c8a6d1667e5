/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/ctl-plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/config.h"
#include "ctl/check/ctl-check.h"
#include "ctl/check/unit.h"
#include "ctl/ctl-answer.h"
#include "ctl/output/output.h"
#include "ctl/session/ctl-run.h"
#include "ctl/session/plan-groups.h"
#include "ctl/session/session.h"
#include "ctl/session/written.h"
#include "ipc/message.h"
#include "json/difference.h"
#include "json/json.h"

#define EXIT_CODE_CHANGES 2
#define NAMES_SHOWN       5  /* of a group */
#define VALUE_SHOWN       80 /* bytes of a value */
#define NAME_LEAST        2

/* The worst that is known of an object. */
enum plan_class { PLAN_UNCHANGED, PLAN_CHANGES, PLAN_UNKNOWN, PLAN_FAILED, PLAN_CLASS_COUNT };

struct plan_report {
        size_t count[PLAN_CLASS_COUNT];
        struct plan_groups groups;
        cJSON *other; /* list of {key, what, why}: what is unknown, and what failed */
        cJSON *early; /* exchanges of a run from before its line: our finalizer is put on */
        /* of the run that is read */
        struct seen seen;
        struct text changes;
        char *key;
        const char *why; /* it is unknown, in words */
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

struct leaves {
        const struct plan_report *report;
        struct text text;
};

/* In values a short name says nothing: "a" and "1" are everywhere. */
static void append_value(struct leaves *leaves, const char *sign, const char *path, const cJSON *value)
{
        const char *slash = strchr(leaves->report->key, '/');
        bool is_telling = strlen(slash ? slash + 1 : leaves->report->key) >= NAME_LEAST;
        _cleanup_free_ char *json = value ? cJSON_PrintUnformatted(value) : NULL;

        if (!json)
                return;
        if (strlen(json) > VALUE_SHOWN)
                memcpy(json + VALUE_SHOWN - 3, "...", 4);
        text_printf(&leaves->text, "    %s %s: ", sign, path);
        if (is_telling)
                append_anonymous(leaves->report, &leaves->text, json);
        else
                text_append_string(&leaves->text, json);
        text_append_string(&leaves->text, "\n");
}

/* The operator's own notes change with its release, and mean nothing to anybody else. */
static bool is_note_of_tooling(const char *path)
{
        return strstr(path, "applyset.k8s.io/tooling") != NULL;
}

static void on_difference(const char *path, const cJSON *before, const cJSON *after, void *userdata)
{
        struct leaves *leaves = userdata;

        if (is_note_of_tooling(path) || ends_with(path, "lastTransitionTime"))
                return;
        append_value(leaves, "-", path, before);
        append_value(leaves, "+", path, after);
}

static void append_object(struct text *out, const char *sign, const cJSON *object, const char *subresource)
{
        const cJSON *metadata = json_member(object, "metadata");
        const char *name = json_text(metadata, "name");

        text_printf(out, "%s %s %s%s\n", sign, json_text(object, "kind"),
                    name[0] ? name : json_text(metadata, "generateName"),
                    subresource[0] ? ", its status" : "");
}

static void note_change(struct plan_report *report, const struct written *written)
{
        struct leaves leaves = {.report = report};
        _cleanup_text_ struct text head = TEXT_EMPTY;
        bool is_hidden;

        /* The request shows the change of an object that was not seen before. */
        if (!written->is_new)
                (void)difference_visit(written->before, written->before ? written->after : written->sent,
                                       on_difference, &leaves);
        is_hidden = leaves.text.size == 0 && written->redacted && !written->redacted_equal;
        if (written->is_new || leaves.text.size > 0 || is_hidden) {
                append_object(&head, written->is_new ? "+ create" : "~ change", written->after,
                              written->is_new ? "" : written->subresource);
                append_anonymous(report, &report->changes, head.data ? head.data : "");
                text_append_string(&report->changes, leaves.text.data);
        }
        if (is_hidden && !written->is_new)
                text_append_string(&report->changes, "    confidential content, which is not shown\n");
        report->makes_namespace =
                report->makes_namespace ||
                (written->is_new && strcmp(json_text(written->after, "kind"), "Namespace") == 0);
        text_done(&leaves.text);
}

static void plan_write(const struct written *written, void *userdata)
{
        struct plan_report *report = userdata;
        _cleanup_free_ char *text = NULL;

        if (strstr(written->path, "/events/"))
                return; /* they come after the end of their run, and are news, not state */
        if (written->status / 100 != 2) {
                report->lacks_namespace = report->lacks_namespace || written->status == 404;
                return;
        }
        if (written->after && !written->is_new && !written->before && written->redacted) {
                report->why = "an object was not seen before it was written";
                return;
        }
        if (written->after) {
                note_change(report, written);
                return;
        }
        text = format_string("- delete %s\n", written->path);
        append_anonymous(report, &report->changes, text ? text : "");
}

static void add_other(struct plan_report *report, const char *what, const char *why)
{
        cJSON *other = cJSON_CreateObject();

        cJSON_AddStringToObject(other, "key", report->key);
        cJSON_AddStringToObject(other, "what", what);
        cJSON_AddStringToObject(other, "why", why);
        cJSON_AddItemToArray(report->other, other);
}

/* What depends on a write that was only tried cannot be known. */
static const char *unknown_because(const struct plan_report *report, const char *result)
{
        if (report->makes_namespace && report->lacks_namespace)
                return "what comes into the namespace that would be made";
        if (strcmp(result, run_result_name(RESULT_SETTLING)) == 0)
                return "what follows when its children are ready";
        return report->why;
}

static int plan_end(struct plan_report *report, const cJSON *line)
{
        const char *result = json_text(line, "result"), *unknown = unknown_because(report, result);
        enum plan_class class = PLAN_UNCHANGED;

        if (strcmp(result, run_result_name(RESULT_STALE)) == 0)
                return 0; /* it is gone meanwhile */
        if (unknown)
                class = PLAN_UNKNOWN;
        else if (strcmp(result, run_result_name(RESULT_SUCCESS)) != 0)
                class = PLAN_FAILED;
        else if (report->changes.size > 0)
                class = PLAN_CHANGES;
        report->count[class]++;
        if (class == PLAN_UNKNOWN)
                add_other(report, "unknown", unknown);
        else if (class == PLAN_FAILED)
                add_other(report, "failed", json_text(line, "message"));
        return report->changes.size > 0 ? plan_groups_add(&report->groups, report->changes.data, report->key)
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
        report->makes_namespace = report->lacks_namespace = false;
        r = report->key ? seen_begin(&report->seen, true) : -ENOMEM;
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
        while (*lines) {
                int size = (int)strcspn(lines, "\n");

                ctl_line("  %.*s", size, lines);
                lines += size + (lines[size] == '\n');
        }
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
        printf("%zu objects, %zu unchanged, %zu change, %zu unknown, %zu fail\n", count_all(report),
               report->count[PLAN_UNCHANGED], report->count[PLAN_CHANGES], report->count[PLAN_UNKNOWN],
               report->count[PLAN_FAILED]);
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
        return is_digit(text[0]) && strcmp(end, "%") == 0 && *ret <= 100;
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
static int take_run(const struct session *session, void *userdata)
{
        const char *path = session_trace_path(session);
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        _cleanup_free_ char *text = NULL;
        size_t allocated = 0;
        int r = file ? 0 : -errno;

        while (r >= 0 && getline(&text, &allocated, file) > 0)
                r = trace_visit(text, plan_line, userdata);
        return r >= 0 && truncate(path, 0) < 0 ? -errno : r;
}

static int run_plan(const struct session_options *options)
{
        _cleanup_(session_free_pointer) struct session *session = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = session_new(options, &session, &error);

        if (r >= 0)
                return session_run(session);
        fprintf(stderr, "reconciledctl: %s\n", error_message(&error));
        return r == -EOPNOTSUPP ? EXIT_CODE_CONFIGURATION : EXIT_CODE_SOFTWARE;
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
        struct plan_report report = {.other = cJSON_CreateArray(), .early = cJSON_CreateArray()};
        int r;

        session_options->on_run = take_run;
        session_options->userdata = &report;
        r = run_plan(session_options);
        if (r == EXIT_CODE_OK)
                r = show_plan(&report, options->json) < 0 ? EXIT_CODE_SOFTWARE
                                                          : plan_exit_code(&report, gate);
        plan_groups_done(&report.groups);
        cJSON_Delete(report.other);
        cJSON_Delete(report.early);
        seen_done(&report.seen);
        text_done(&report.changes);
        free(report.key);
        return r;
}

int ctl_plan(const struct plan_options *options)
{
        _cleanup_(config_free_pointer) struct config *config = NULL;
        _cleanup_(unit_credential_done) struct unit_credential unit = {0};
        _cleanup_error_ struct error error = ERROR_NONE;
        struct session_options session_options = {.selector = options->selector};
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
        r = ctl_use_unit(config, &unit, status, &error);
        return r != 0 ? r : tell_plan(&session_options, options, gate);
}
