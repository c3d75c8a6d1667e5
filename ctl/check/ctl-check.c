/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/check/ctl-check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/handler-limits.h"
#include "ctl/check/served.h"
#include "ctl/check/unit.h"
#include "ctl/output/output.h"
#include "kubeconfig/kubeconfig.h"
#include "kubeconfig/value.h"
#include "os/cgroup.h"
#include "json/json.h"

/* What is found out, for people or for a program. */
struct report {
        const char *path;
        struct config *config; /* NULL: it has mistakes */
        struct config_problems problems;
        struct kubeconfig cluster;   /* which server would be asked, and as whom */
        struct unit_credential unit; /* of the unit that runs this configuration; zero: there is none */
        int unit_status;
        bool has_cluster;
        int cluster_status; /* -ENOENT with the default search: in a pod its service account would be used */
        struct error cluster_error;
        char *not_asked; /* why it is unknown which kinds the server serves; NULL if it is known */
};

static void check_cluster(struct report *report)
{
        struct kubeconfig_options options = {report->config->kubeconfig, report->config->context};
        bool own = options.path[0];
        int r = report->unit_status;

        if (r < 0 && !(own && r != -EINVAL)) {
                report->cluster_status = r;
                return;
        }
        error_done(&report->cluster_error);
        if (report->unit.path && !own)
                options.path = report->unit.path;
        else
                unit_credential_done(&report->unit);
        r = kubeconfig_load(&options, &report->cluster, &report->cluster_error);
        report->has_cluster = r >= 0;
        report->cluster_status = r == -ENOENT && !options.path[0] ? 0 : r;
        if (r >= 0)
                report->not_asked = served_check(report->config, &report->cluster, &report->problems);
}

static void print_cluster(const struct report *report)
{
        if (report->has_cluster)
                printf("server: %s%s\nidentity: %s\n", report->cluster.server,
                       report->cluster.insecure ? " (its certificate is not checked)" : "",
                       report->cluster.identity);
        else if (report->cluster_status < 0 && report->config->kubeconfig_line > 0)
                printf("%s:%u: cluster.kubeconfig: %s\n", report->config->kubeconfig_file,
                       report->config->kubeconfig_line, error_message(&report->cluster_error));
        else if (report->cluster_status < 0)
                printf("%s: cluster: %s\n", report->path ? report->path : "the configuration",
                       error_message(&report->cluster_error));
        else
                printf("note: %s; in a pod its service account would be used\n",
                       error_message(&report->cluster_error));
}

static void add_note(cJSON *notes, const char *format, ...) _printf_(2, 3);

static void add_note(cJSON *notes, const char *format, ...)
{
        _cleanup_text_ struct text note = TEXT_EMPTY;
        va_list arguments;

        va_start(arguments, format);
        text_vprintf(&note, format, arguments);
        va_end(arguments);
        cJSON_AddItemToArray(notes, cJSON_CreateString(note.data ? note.data : ""));
}

static void add_limits_note(cJSON *notes, const struct config *config)
{
        for (size_t i = 0; i < config->watch_count; i++)
                if (config_has_limits(&config->watch[i])) {
                        add_note(notes,
                                 "handler.limits can be enforced as configured only in a control group that "
                                 "is delegated to the operator (drop-in cgroups.conf); its log and "
                                 "reconciledctl status show how they are enforced");
                        return;
                }
}

static void add_users_notes(cJSON *notes, const struct config *config)
{
        bool same = false;

        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                if (watch->handler.user)
                        add_note(notes,
                                 "handlers of watch %s run as the user %s: the operator must be root or "
                                 "have CAP_SETUID, CAP_SETGID and CAP_KILL (drop-in user.conf)",
                                 watch->name, watch->handler.user);
                same = same || (!watch->handler.user && !watch->owner);
        }
        if (same)
                add_note(notes, "credentials not separated: handlers run as the operator's own user (see "
                                "handler.user)");
}

/* Only the ledger knows then what is gone. */
static void add_deletions_note(cJSON *notes, const struct config *config)
{
        _cleanup_text_ struct text names = TEXT_EMPTY;

        for (size_t i = 0; i < config->watch_count; i++)
                if (!config->watch[i].owner && !config->watch[i].own && !config->watch[i].finalizer)
                        text_printf(&names, "%s%s", names.size > 0 ? ", " : "", config->watch[i].name);
        if (names.size > 0)
                add_note(notes,
                         "without a finalizer (%s), deletions while no operator runs are found only if the "
                         "state folder outlives the operator's pod: use a StatefulSet with a volume claim, "
                         "not a Deployment with an emptyDir",
                         names.data);
}

/* The kinds that handlers may answer as children, as far as they are known without running one. */
static void add_children_notes(cJSON *notes, const struct config *config)
{
        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                _cleanup_text_ struct text kinds = TEXT_EMPTY;

                for (size_t k = 0; k < watch->answers_count; k++)
                        text_printf(&kinds, "%s%s %s", k > 0 ? ", " : "", watch->answers[k].api_version,
                                    watch->answers[k].kind);
                if (kinds.size > 0 && !watch->own)
                        add_note(notes,
                                 "children of watch %s may be of %s; a change of one runs its owner only if "
                                 "`owns` names the kind",
                                 watch->name, kinds.data);
                for (size_t k = 0; k < watch->child_namespace_count; k++)
                        if (strcmp(watch->child_namespace[k], "*") == 0)
                                add_note(
                                        notes,
                                        "children of watch %s may be in each namespace, kube-system included: "
                                        "name those that its handler needs in children.namespaces",
                                        watch->name);
        }
}

static void add_replicas_note(cJSON *notes, const struct config *config)
{
        char duration[64];

        if (!config->replicas)
                return;
        duration_format(config->replicas_duration_usec, duration, sizeof(duration));
        add_note(
                notes,
                "replicas: one leads by Lease %s/%s, and another one takes over at once when it ends, or %s after its death "
                "where nobody is left who can say so; then each object runs once. A replica that ran without `replicas` must end before the "
                "first one with it starts: use the strategy Recreate, once",
                config->replicas_namespace, config->replicas_lease, duration);
        add_note(
                notes,
                "replicas: backoffs and the history are known to the replica that leads, and not to the next one; watches "
                "without a finalizer may not be told of a deletion that falls into a takeover");
        if (config->replicas_compatible)
                add_note(
                        notes,
                        "replicas: an operator of client-go may hold this Lease as well, and no more is promised than client-go "
                        "promises while it stands for election: take `compatible` out once that operator is gone");
}

/* What is no mistake, and should be known. */
static cJSON *make_notes(const struct report *report)
{
        const struct config *config = report->config;
        cJSON *notes = cJSON_CreateArray();

        if (report->unit.source)
                add_note(notes, "%s takes its kubeconfig from %s", report->unit.unit, report->unit.source);

        add_limits_note(notes, config);
        add_users_notes(notes, config);
        add_deletions_note(notes, config);
        add_children_notes(notes, config);
        add_replicas_note(notes, config);
        if (report->not_asked)
                add_note(notes, "the server was not asked whether it serves these kinds: %s",
                         report->not_asked);
        return notes;
}

static void print_notes(const struct report *report)
{
        _cleanup_json_ cJSON *notes = make_notes(report);
        const cJSON *note;

        cJSON_ArrayForEach(note, notes) printf("note: %s\n", cJSON_GetStringValue(note));
}

static void print_report(const struct report *report)
{
        const struct config *config = report->config;

        for (size_t i = 0; i < report->problems.count; i++) {
                _cleanup_text_ struct text line = TEXT_EMPTY;

                if (config_problem_format(&report->problems.problem[i], &line) >= 0)
                        ctl_line("%s", line.data);
        }
        if (!config)
                return;
        printf("%s: operator %s, %zu %s, %u %s: %s\n", report->path ? report->path : "the configuration",
               config->operator_name, config->watch_count, counted(config->watch_count, "watch", "watches"),
               config->workers, counted(config->workers, "worker", "workers"),
               report->cluster_status < 0             ? "its access to the cluster cannot be used"
               : config_has_errors(&report->problems) ? "the server does not serve all of its kinds"
                                                      : "no mistakes found");
        print_notes(report);
        print_cluster(report);
}

static void report_problem(cJSON *list, const struct config_problem *problem)
{
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "file", problem->file ? problem->file : "");
        cJSON_AddNumberToObject(item, "line", problem->line);
        cJSON_AddStringToObject(item, "key", problem->key ? problem->key : "");
        cJSON_AddStringToObject(item, "text", problem->text);
        cJSON_AddBoolToObject(item, "warning", problem->warning);
        cJSON_AddItemToArray(list, item);
}

static void add_cluster(cJSON *document, const struct report *report)
{
        if (!report->has_cluster) {
                cJSON_AddStringToObject(document, "clusterError", error_message(&report->cluster_error));
                return;
        }
        cJSON_AddStringToObject(document, "server", report->cluster.server);
        cJSON_AddBoolToObject(document, "insecure", report->cluster.insecure);
        cJSON_AddStringToObject(document, "identity", report->cluster.identity);
}

static void print_report_json(const struct report *report)
{
        _cleanup_json_ cJSON *document = cJSON_CreateObject();
        cJSON *problems;

        cJSON_AddBoolToObject(document, "valid",
                              report->config && report->cluster_status >= 0 &&
                                      !config_has_errors(&report->problems));
        problems = cJSON_AddArrayToObject(document, "problems");
        for (size_t i = 0; i < report->problems.count; i++)
                report_problem(problems, &report->problems.problem[i]);
        if (report->config) {
                cJSON_AddStringToObject(document, "operator", report->config->operator_name);
                cJSON_AddNumberToObject(document, "watches", (double)report->config->watch_count);
                cJSON_AddNumberToObject(document, "workers", report->config->workers);
                cJSON_AddItemToObject(document, "notes", make_notes(report));
                add_cluster(document, report);
        }
        (void)ctl_print_json(document);
}

/* At best, on this machine: whether a control group is delegated is known where the operator runs. */
static void check_limits(struct report *report)
{
        char why[256], weakened[320];
        unsigned controllers = cgroup_look(why, sizeof(why));

        FOREACH_ARRAY(watch, report->config->watch, report->config->watch_count) {
                config_limits_weakened(watch, controllers, weakened, sizeof(weakened));
                if (weakened[0])
                        config_problem_add(&report->problems, watch, 0, true, "handler.limits",
                                           "they cannot be enforced as configured, because %s: %s", why,
                                           weakened);
        }
}

int ctl_check(const char *path, bool json)
{
        struct report report = {.path = path};
        int r;

        report.unit_status = unit_credential_find(path, &report.unit, &report.cluster_error);
        unit_credential_use(&report.unit);
        r = config_load(path, &report.config, &report.problems);
        if (r < 0 && !config_has_errors(&report.problems))
                fprintf(stderr, "reconciledctl: %s: %s\n", path ? path : "the configuration", strerror(-r));
        if (r >= 0)
                check_cluster(&report);
        if (r >= 0)
                check_limits(&report);
        if (json)
                print_report_json(&report);
        else
                print_report(&report);
        r = r < 0 || report.cluster_status < 0 || config_has_errors(&report.problems)
                    ? EXIT_CODE_CONFIGURATION
                    : EXIT_CODE_OK;
        config_problems_done(&report.problems);
        config_free(report.config);
        if (report.has_cluster)
                kubeconfig_done(&report.cluster);
        unit_credential_done(&report.unit);
        error_done(&report.cluster_error);
        free(report.not_asked);
        return r;
}

struct config *ctl_load_config(const char *path)
{
        struct config_problems problems = {0};
        struct config *config = NULL;
        int r = config_load(path, &config, &problems);

        for (size_t i = 0; i < problems.count && r < 0; i++) {
                _cleanup_text_ struct text line = TEXT_EMPTY;

                if (config_problem_format(&problems.problem[i], &line) >= 0) {
                        utf8_clean(line.data);
                        fprintf(stderr, "%s\n", line.data);
                }
        }
        if (r < 0 && !config_has_errors(&problems))
                fprintf(stderr, "reconciledctl: the configuration: %s\n", strerror(-r));
        if (r < 0 && !path)
                fputs("reconciledctl: give the file with --config\n", stderr);
        config_problems_done(&problems);
        return r < 0 ? NULL : config;
}
