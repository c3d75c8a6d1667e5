/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/torture-report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/output/output.h"

#include "json/json.h"

const struct case_kind report_faultless = {.name = "without any fault", .what = "nothing is in its way"};

static bool has_failed(const struct case_report *report)
{
        return report->ran && !report->unsteady && report->attempt.result == CASE_FAILED;
}

char *report_name(const struct torture_case *of)
{
        const char *words = of->of ? json_text(of->of, "words") : "";

        return format_string("%s%s%s", of->kind->name, words[0] ? ": " : "", words);
}

void report_progress(size_t done, size_t count, const struct torture_case *next)
{
        _cleanup_free_ char *name = next ? report_name(next) : NULL;

        if (!isatty(STDERR_FILENO))
                return;
        if (name)
                fprintf(stderr, "\r\033[K[%zu/%zu] %.100s", done, count, name);
        else
                fputs("\r\033[K", stderr);
}

/* Indented, with a number in front of each line if they are steps. */
static void print_lines(const struct text *lines, bool numbered)
{
        const char *line = lines->data ? lines->data : "";

        for (unsigned i = 1; *line; i++) {
                int size = (int)strcspn(line, "\n");

                if (numbered)
                        ctl_line("  %u. %.*s", i, size, line);
                else
                        ctl_line("     %.*s", size, line);
                line += size + (line[size] == '\n');
        }
}

void report_failure(const struct case_report *report)
{
        _cleanup_free_ char *name = report_name(&report->of);

        ctl_line("FAILED %s", name ? name : "");
        print_lines(&report->attempt.steps, true);
        puts("     Then:");
        print_lines(&report->attempt.failure, false);
        if (report->recording)
                ctl_line("     recording: %s (reconciledctl replay)", report->recording);
        puts("");
        (void)fflush(stdout);
}

struct tally {
        size_t cases, failed, unsteady, left;
};

static struct tally tally_of(const struct report_summary *summary, const struct case_kind *kind)
{
        struct tally tally = {0};

        FOREACH_ARRAY(report, summary->report, summary->count) {
                if (kind && report->of.kind != kind)
                        continue;
                tally.left += !report->ran;
                tally.cases += report->ran && (report->unsteady || report->attempt.result != CASE_SKIPPED);
                tally.failed += has_failed(report);
                tally.unsteady += report->unsteady;
        }
        return tally;
}

size_t report_failures(const struct report_summary *summary)
{
        return tally_of(summary, NULL).failed;
}

static void print_set(const char *what, const cJSON *set)
{
        const cJSON *each;

        cJSON_ArrayForEach(each, set) ctl_line("%s %s", what, each->string);
}

static void print_people(const struct report_summary *summary)
{
        struct tally all = tally_of(summary, NULL);

        if (all.cases > tally_of(summary, &report_faultless).cases)
                printf("%-15s %5s %6s  %s\n", "case", "runs", "failed", "what happens");
        for (size_t i = 0; i < KIND_COUNT; i++) {
                struct tally tally = tally_of(summary, &case_kind[i]);

                if (tally.cases > 0)
                        printf("%-15s %5zu %6zu  %s\n", case_kind[i].name, tally.cases, tally.failed,
                               case_kind[i].what);
        }
        puts("");
        print_set("masked, since it differs without any fault:", summary->torture->mask.path);
        print_set("only counted, since names differ without any fault:", summary->torture->mask.kind);
        print_set("refused by the handler for good, which is an answer:", summary->torture->refused);
        FOREACH_ARRAY(report, summary->report, summary->count) {
                _cleanup_free_ char *name = report->unsteady ? report_name(&report->of) : NULL;

                if (name)
                        ctl_line("unsteady, failed once and then passed: %s", name);
        }
        if (all.left > 0)
                printf("%zu cases were left out\n", all.left);
        printf("%zu cases, %zu failed\n", all.cases, all.failed);
}

/* ---- for programs */

static cJSON *lines_of(const struct text *lines)
{
        const char *line = lines->data ? lines->data : "";
        cJSON *list = cJSON_CreateArray();

        while (*line) {
                size_t size = strcspn(line, "\n");
                _cleanup_free_ char *copy = strndup(line, size);

                cJSON_AddItemToArray(list, cJSON_CreateString(copy ? copy : ""));
                line += size + (line[size] == '\n');
        }
        return list;
}

static cJSON *names_of(const cJSON *set)
{
        cJSON *list = cJSON_CreateArray();
        const cJSON *each;

        cJSON_ArrayForEach(each, set) cJSON_AddItemToArray(list, cJSON_CreateString(each->string));
        return list;
}

static const char *case_result_name(const struct case_report *report)
{
        return !report->ran                             ? "left out"
               : report->unsteady                       ? "unsteady"
               : report->attempt.result == CASE_FAILED  ? "failed"
               : report->attempt.result == CASE_SKIPPED ? "skipped"
                                                        : "passed";
}

static cJSON *json_of(const struct case_report *report)
{
        cJSON *object = cJSON_CreateObject();

        cJSON_AddStringToObject(object, "case", report->of.kind->name);
        cJSON_AddStringToObject(object, "of", report->of.of ? json_text(report->of.of, "words") : "");
        cJSON_AddStringToObject(object, "result", case_result_name(report));
        if (report->attempt.failure.size > 0) {
                cJSON_AddItemToObject(object, "steps", lines_of(&report->attempt.steps));
                cJSON_AddItemToObject(object, "failure", lines_of(&report->attempt.failure));
        }
        if (report->recording)
                cJSON_AddStringToObject(object, "recording", report->recording);
        return object;
}

static void report_json(const struct report_summary *summary)
{
        struct tally all = tally_of(summary, NULL);
        _cleanup_json_ cJSON *answer = cJSON_CreateObject();
        cJSON *list = cJSON_AddArrayToObject(answer, "results");

        cJSON_AddNumberToObject(answer, "cases", (double)all.cases);
        cJSON_AddNumberToObject(answer, "failed", (double)all.failed);
        cJSON_AddNumberToObject(answer, "unsteady", (double)all.unsteady);
        cJSON_AddNumberToObject(answer, "leftOut", (double)all.left);
        cJSON_AddItemToObject(answer, "masked", names_of(summary->torture->mask.path));
        cJSON_AddItemToObject(answer, "counted", names_of(summary->torture->mask.kind));
        cJSON_AddItemToObject(answer, "refused", names_of(summary->torture->refused));
        FOREACH_ARRAY(report, summary->report, summary->count)
                cJSON_AddItemToArray(list, json_of(report));
        (void)ctl_print_json(answer);
}

void report_summary(const struct report_summary *summary)
{
        if (summary->json)
                report_json(summary);
        else
                print_people(summary);
}

/* ---- JUnit */

static void append_xml(struct text *out, const char *text)
{
        for (const char *c = text; *c; c++)
                if (strchr("<>&\"", *c) || (unsigned char)*c < ' ')
                        text_printf(out, *c == '\n' ? "\n" : (unsigned char)*c < ' ' ? "?" : "&#%d;", *c);
                else
                        text_append(out, c, 1);
}

static void append_case(struct text *out, const struct case_report *report)
{
        _cleanup_free_ char *name = report_name(&report->of);

        text_append_string(out, "  <testcase classname=\"torture.");
        append_xml(out, report->of.kind->name);
        text_append_string(out, "\" name=\"");
        append_xml(out, name ? name : "");
        text_append_string(out, "\">");
        if (has_failed(report)) {
                text_append_string(out, "<failure>");
                append_xml(out, report->attempt.steps.data ? report->attempt.steps.data : "");
                append_xml(out, report->attempt.failure.data ? report->attempt.failure.data : "");
                text_append_string(out, "</failure>");
        } else if (!report->ran || (!report->unsteady && report->attempt.result == CASE_SKIPPED)) {
                text_append_string(out, "<skipped/>");
        }
        text_append_string(out, "</testcase>\n");
}

int report_junit(FILE *file, const struct report_summary *summary)
{
        struct tally all = tally_of(summary, NULL);
        _cleanup_text_ struct text out = TEXT_EMPTY;

        text_printf(&out,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"torture\" tests=\"%zu\" "
                    "failures=\"%zu\">\n",
                    summary->count, all.failed);
        FOREACH_ARRAY(report, summary->report, summary->count)
                append_case(&out, report);
        text_append_string(&out, "</testsuite>\n");
        if (out.failed)
                return -ENOMEM;
        return fwrite(out.data, 1, out.size, file) == out.size && fflush(file) == 0 ? 0 : -errno;
}
