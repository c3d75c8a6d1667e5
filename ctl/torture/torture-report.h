/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a torture reports: progress, failures, a table; JSON; JUnit's XML. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ctl/torture/torture-case.h"

struct case_report {
        struct torture_case of;
        struct attempt attempt;
        bool ran, unsteady; /* it failed once, and passed when it ran again */
        char *recording;    /* a folder; NULL */
};

/* The only case of a handler that fails without any fault. */
extern const struct case_kind report_faultless;

struct report_summary {
        const struct torture *torture;
        const struct case_report *report;
        size_t count;
        bool json;
};

/* The words of a case: its kind, and of which write or value. Owned by the caller; NULL: no memory. */
char *report_name(const struct torture_case *of);
void report_progress(size_t done, size_t count, const struct torture_case *next); /* on a terminal alone */
void report_failure(const struct case_report *report);
void report_summary(const struct report_summary *summary);
int report_junit(FILE *file, const struct report_summary *summary);
/* How many have failed, in both attempts. */
size_t report_failures(const struct report_summary *summary);
