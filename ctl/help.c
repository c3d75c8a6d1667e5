/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/help.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ipc/message.h"

enum word option_word(int letter)
{
        switch (letter) {
        case 'r':
        case 'c':
        case 'O':
                return WORD_FILE;
        case 'o':
                return WORD_FORMAT;
        case 'W':
                return WORD_WATCH;
        default:
                return WORD_FREE;
        }
}

const struct verb *find_verb(const struct command_line *line, const char *name)
{
        for (size_t i = 0; i < line->verb_count; i++)
                if (strcmp(name, line->verb[i].name) == 0)
                        return &line->verb[i];
        return NULL;
}

/* In the words of all verbs that take them. */
static const struct {
        int letter;
        const char *name, *what;
} about[] = {
        {'j', "--json", "for programs"},
        {'o', "-o, --output FORMAT", "wide, json or yaml"},
        {'n', "-n, --namespace NAME",
         "of a key that names none; of a list; of rbac: where the operator runs"},
        {'i', "--interval DURATION", "between two updates (100ms to 1h; 2s)"},
        {'f', "-f, --follow", "follow what is written from now on"},
        {'R', "--ready", "whether all watches are in sync, too"},
        {'c', "--config FILE", "the configuration (default: " RECONCILED_SYSCONFDIR "/reconciled.yaml)"},
        {'a', "--service-account NAME", "as whom the operator runs"},
        {'p', "--plural KIND=PLURAL", "where the guess is wrong"},
        {'d', "--crd FILE", "CustomResourceDefinitions, which tell plural and scope of kinds"},
        {'l', "--all", "all objects of one watch"},
        {'A', "--all-failed", "all objects that have failed, of one watch or of all"},
        {'k', "--kind KIND", "of the objects that the operator handles"},
        {'g', "--group DOMAIN", "of the kind (example.com)"},
        {'F', "--field NAME:TYPE", "of the spec: string, int, number, bool or string[]; one or more"},
        {'L', "--lang LANGUAGE", "of the handler: sh, python, node, go, rust or c (sh)"},
        {'C', "--child KIND", "an example of a child: ConfigMap, Deployment, Job or Service"},
        {'z', "--finalizer",
         "of release: take our finalizer off it, without its cleanup; of init: hold\n"
         "                             what is deleted until the handler has cleaned up"},
        {'w', "--reason TEXT", "why; the operator's log keeps it"},
        {'X', "--cancel", "let the operator run again and put its finalizers on again"},
        {'y', "--yes", "do not ask"},
        {'t', "--timeout DURATION", "give up after so long without progress (100ms to 1h; 30s)"},
        {'O', "--object FILE|KEY", "a manifest, or an object of the cluster (namespace/name)"},
        {'W', "--watch WATCH", "whose handler"},
        {'P', "--apply", "keep what is written"},
        {'r', "--runtime-directory DIR",
         "of the operator (default: $RUNTIME_DIRECTORY or " RECONCILED_RUNDIR ")"},
};

void help_verb(const struct command_line *line, const struct verb *verb)
{
        printf("Usage: reconciledctl %s [OPTION...]%s%s\n\n%s.\n\n", verb->name,
               verb->synopsis[0] ? " " : "", verb->synopsis, verb->help);
        for (size_t i = 0; i < ELEMENTS(about); i++)
                if (strchr(verb->options, about[i].letter) || strchr(line->always, about[i].letter))
                        printf("  %-26s %s\n", about[i].name, about[i].what);
        printf("  %-26s %s\n\nSee reconciledctl(1).\n", "-h, --help", "this");
}

#define COLUMN 34

void help_all(const struct command_line *line)
{
        puts("Usage: reconciledctl VERB [OPTION...] [ARGUMENT...]\n");
        for (size_t i = 0; i < line->verb_count; i++) {
                const struct verb *verb = &line->verb[i];
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
