/* SPDX-License-Identifier: Apache-2.0 */
/* The probe in C: README.md. */
#define _GNU_SOURCE /* environ */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reconciled-kit.h"

static struct rk_value *do_status(struct rk_request *request, const struct rk_value *spec)
{
        return rk_build(request, "{'status': {'name': %s, 'size': %v}, 'requeueAfter': '300000ms'}",
                        request->name, rk_get(spec, "size"));
}

static struct rk_value *do_metrics(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_build(
                request,
                "{'metrics': [{'name': 'probe_calls', 'action': 'add', 'value': 1.5, 'labels': {'name': %s}},"
                " {'name': 'probe_seconds', 'action': 'observe', 'value': 0, 'buckets': [0.5, 2]}]}",
                request->name);
}

static struct rk_value *do_at(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_build(request, "{'requeueAt': '2036-02-29T03:00:00.125Z'}");
}

static struct rk_value *do_children(struct rk_request *request, const struct rk_value *spec)
{
        struct rk_value *children = rk_build(request, "[]");
        char shown[100] = "";

        (void)spec;
        for (size_t i = 0; i < rk_count(request->children); i++) {
                const char *name =
                        rk_text(rk_get(rk_get(rk_at(request->children, i), "metadata"), "name"), "?");
                size_t used = strlen(shown);

                snprintf(shown + used, sizeof(shown) - used, "%s%s", i > 0 ? " " : "", name);
        }
        rk_append(
                request, children,
                rk_build(
                        request,
                        "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': %s}, 'data': {%s: %s}}",
                        request->name, "shown", shown));
        return rk_build(request, "{'children': %v}", children);
}

static struct rk_value *do_childless(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_build(request, "{'children': []}");
}

static struct rk_value *do_conditions(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_build(
                request,
                "{'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'Up', 'message': 'it is up'}],"
                " 'events': [{'type': 'Warning', 'reason': 'Slow', 'note': 'it took long'}]}");
}

static struct rk_value *do_print(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        puts("to standard output");
        return rk_build(request, "{'message': 'printed'}");
}

static struct rk_value *do_log(struct rk_request *request, const struct rk_value *spec)
{
        (void)request, (void)spec;
        rk_info("one");
        rk_warning("two\nthree");
        rk_error("%s", "four");
        return NULL;
}

static struct rk_value *do_temporary(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_temporary(request, 90000, "the service is %s", "away");
}

static struct rk_value *do_backoff(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_temporary(request, 0, "the service is away");
}

static struct rk_value *do_permanent(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_permanent(request, "spec.size is negative");
}

static struct rk_value *do_half(struct rk_request *request, const struct rk_value *spec)
{
        struct rk_value *answer = rk_temporary(request, 0, "half of it");

        (void)spec;
        rk_set(request, answer, "status", rk_build(request, "{'half': %b}", true));
        return answer;
}

static struct rk_value *do_text(struct rk_request *request, const struct rk_value *spec)
{
        return rk_build(request, "{'message': %s}", rk_text(rk_get(spec, "text"), NULL));
}

static struct rk_value *do_attempt(struct rk_request *request, const struct rk_value *spec)
{
        char text[200];

        snprintf(text, sizeof(text), "%s: attempt %lld of %s, %s after: %s",
                 rk_text(rk_get(spec, "prefix"), ""), request->attempt, request->watch, request->reason,
                 request->last_error);
        return rk_build(request, "{'message': %s}", text);
}

static struct rk_value *do_wait(struct rk_request *request, const struct rk_value *spec)
{
        char text[100] = "";
        FILE *fifo;

        rk_info("it waits");
        fifo = fopen(rk_text(rk_get(spec, "fifo"), ""), "r");
        if (!fifo || !fgets(text, sizeof(text), fifo))
                return rk_temporary(request, 0, "the fifo cannot be read");
        fclose(fifo);
        return rk_build(request, "{'message': %s}", text);
}

static struct rk_value *do_exit(struct rk_request *request, const struct rk_value *spec)
{
        (void)request, (void)spec;
        exit(70);
}

/* What only this language can do wrong, or has. */

static struct rk_value *do_list(struct rk_request *request, const struct rk_value *spec)
{
        (void)spec;
        return rk_build(request, "[1]");
}

static struct rk_value *do_echo(struct rk_request *request, const struct rk_value *spec)
{
        struct rk_value *answer = rk_build(request, "{'status': {}}");
        struct rk_value *copy = rk_copy(request, rk_get(spec, "value"));

        rk_set(request, copy, "more", rk_build(request, "[%d, %f, %b, %s, '\\'']", -7, 0.5, 0, NULL));
        rk_set(request, answer, "status", copy);
        return answer;
}

static struct rk_value *do_sum(struct rk_request *request, const struct rk_value *spec)
{
        const struct rk_value *list = rk_get(spec, "list");
        long long sum = 0;

        for (size_t i = 0; i < rk_count(list); i++)
                sum += rk_integer(rk_at(list, i), 0);
        return rk_build(request, "{'status': {'sum': %lld}}", sum);
}

static struct rk_value *do_template(struct rk_request *request, const struct rk_value *spec)
{
        return rk_build(request, rk_text(rk_get(spec, "template"), ""));
}

static struct rk_value *do_program(struct rk_request *request, const struct rk_value *spec)
{
        char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"cat; echo of a program"}, NULL};
        pid_t pid;
        int status;

        (void)spec;
        if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
                return rk_temporary(request, 0, "no program");
        return NULL;
}

static struct rk_value *reconcile(struct rk_request *request)
{
        static const struct {
                const char *name;
                struct rk_value *(*function)(struct rk_request *request, const struct rk_value *spec);
        } known[] = {{"status", do_status},       {"at", do_at},
                     {"metrics", do_metrics},     {"children", do_children},
                     {"childless", do_childless}, {"conditions", do_conditions},
                     {"print", do_print},         {"log", do_log},
                     {"temporary", do_temporary}, {"backoff", do_backoff},
                     {"permanent", do_permanent}, {"half", do_half},
                     {"text", do_text},           {"attempt", do_attempt},
                     {"wait", do_wait},           {"held", do_wait},
                     {"exit", do_exit},           {"list", do_list},
                     {"echo", do_echo},           {"template", do_template},
                     {"program", do_program},     {"sum", do_sum}};
        const struct rk_value *spec = rk_get(request->object, "spec");
        const char *name = rk_text(rk_get(spec, "do"), "");

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (strcmp(known[i].name, name) == 0)
                        return known[i].function(request, spec);
        return NULL;
}

static struct rk_value *finalize(struct rk_request *request)
{
        return rk_build(request, "{'done': false, 'requeueAfter': '5000ms'}");
}

static struct rk_value *nightly(struct rk_request *request)
{
        char text[200];

        snprintf(text, sizeof(text), "%s of %s", request->watch, request->name);
        return rk_build(request, "{'message': %s}", text);
}

static struct rk_value *prepare(struct rk_request *request)
{
        return rk_build(request, "{'patch': {'data': {'prepared': %s}}}", request->watch);
}

int main(int argc, char **argv)
{
        const struct rk_schedule schedules[] = {{"nightly", nightly}, {NULL, NULL}};
        const struct rk_handler all = {
                .reconcile = reconcile, .finalize = finalize, .startup = prepare, .schedules = schedules};
        const char *what = argc > 1 ? argv[1] : "";

        if (strcmp(what, "schedules") == 0)
                return rk_serve(&(struct rk_handler){.schedules = schedules});
        return strcmp(what, "parallel") == 0 ? rk_serve_parallel(&all, 4) : rk_serve(&all);
}
