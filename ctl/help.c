/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/help.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

const struct ctl_option *find_option(const struct command_line *line, int letter)
{
        for (size_t i = 0; i < line->option_count; i++)
                if (line->option[i].letter == letter)
                        return &line->option[i];
        return NULL;
}

const struct verb *find_verb(const struct command_line *line, const char *name)
{
        for (size_t i = 0; i < line->verb_count; i++)
                if (strcmp(name, line->verb[i].name) == 0)
                        return &line->verb[i];
        return NULL;
}

/* "-o, --output FORMAT" */
static void help_option(const struct command_line *line, const struct ctl_option *option)
{
        const char letter[] = {'-', (char)option->letter, ',', ' ', '\0'};
        char form[64];

        snprintf(form, sizeof(form), "%s--%s%s%s", strchr(line->letters, option->letter) ? letter : "",
                 option->name, option->argument ? " " : "", option->argument ? option->argument : "");
        printf("  %-26s %s\n", form, option->what);
}

void help_verb(const struct command_line *line, const struct verb *verb)
{
        printf("Usage: reconciledctl %s [OPTION...]%s%s\n\n%s.\n\n", verb->name,
               verb->synopsis[0] ? " " : "", verb->synopsis, verb->help);
        for (const struct ctl_option *each = line->option; each < line->option + line->option_count; each++)
                if (each->what &&
                    (strchr(verb->options, each->letter) || strchr(line->always, each->letter)))
                        help_option(line, each);
        puts("\nSee reconciledctl(1).");
}

#define COLUMN 34

void help_all(const struct command_line *line)
{
        puts("Usage: reconciledctl VERB [OPTION...] [ARGUMENT...]\n");
        FOREACH_ARRAY(verb, line->verb, line->verb_count) {
                int length = printf("  %s %s", verb->name, verb->synopsis);

                if (length >= COLUMN)
                        length = printf("\n") - 1;
                printf("%*s%s\n", COLUMN - length, "", verb->what);
        }
        puts("\n  --runtime-directory DIR         of the operator (default: $RUNTIME_DIRECTORY "
             "or " RECONCILED_RUNDIR ")\n"
             "  --json                          for programs, of every verb\n"
             "  VERB --help                     what a verb takes\n"
             "  --help, --version\n\n"
             "Exit codes: 0, 1 the handler failed or answers differ, 64 usage, 69 no operator is running\n"
             "there, 70 not healthy, not done or not known, 74 the output cannot be written, 77 it refuses\n"
             "us, 78 mistakes in the configuration.");
}

#define DISTANCE_MAX 3 /* typing errors */

const char *help_suggest(const struct command_line *line, const char *word)
{
        size_t best = DISTANCE_MAX;
        const char *found = NULL;

        for (size_t i = 0; i < line->verb_count; i++) {
                size_t distance = word_distance(word, line->verb[i].name);

                if (distance < best && 2 * distance <= strlen(word)) {
                        best = distance;
                        found = line->verb[i].name;
                }
        }
        return found;
}
