/* SPDX-License-Identifier: Apache-2.0 */
/* What a shell asks when somebody presses Tab: `reconciledctl __complete WORD...`, the last one unfinished.
 */
#include "ctl/complete.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "ctl/ctl-answer.h"
#include "json/json.h"

struct place {
        const struct command_line *line;
        const char *runtime_directory;
        const struct verb *verb; /* NULL if there is none yet */
        const char *watch;       /* the verb's first argument */
        int arguments;
        int asking; /* the option whose argument is wanted; 0 */
        bool over;  /* after "--" */
};

/* The characters of words that a shell takes as they are. Names of objects are others' texts, and bash puts
 * a candidate into the command line unquoted. */
#define PLAIN_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"

static void print_candidate(const char *candidate, const char *what, const char *begun)
{
        if (strncmp(candidate, begun, strlen(begun)) != 0 || candidate[strspn(candidate, PLAIN_CHARACTERS)])
                return;
        printf("%s%s%s\n", candidate, what ? "\t" : "", what ? what : "");
}

/* ---- where we are */

static void pass_option(struct place *place, const char *word)
{
        const struct command_line *line = place->line;

        for (size_t i = 0; i < line->option_count; i++)
                if (strcmp(line->option[i].name, word + 2) == 0 && line->option[i].argument)
                        place->asking = line->option[i].letter;
}

static void pass_word(struct place *place, const char *word)
{
        if (place->asking) {
                if (place->asking == 'r')
                        place->runtime_directory = word;
                place->asking = 0;
        } else if (strcmp(word, "--") == 0) {
                place->over = true;
        } else if (strncmp(word, "--", 2) == 0 && !place->over) {
                pass_option(place, word);
        } else if ((strcmp(word, "-n") == 0 || strcmp(word, "-o") == 0) && !place->over) {
                place->asking = (unsigned char)word[1];
        } else if (word[0] == '-' && !place->over) {
                return;
        } else if (!place->verb) {
                place->verb = find_verb(place->line, word);
        } else if (place->arguments++ == 0) {
                place->watch = word;
        }
}

/* ---- what is there */

static cJSON *ask_for_words(const struct place *place, const char *command, char **argument)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        cJSON *answer = NULL;

        return ctl_query(place->runtime_directory, command, argument, &answer, &error) < 0 ? NULL : answer;
}

static void offer_watches(const struct place *place, const char *begun)
{
        _cleanup_json_ cJSON *status = ask_for_words(place, "status", NULL);
        const cJSON *watch;

        /* Watches with an owner follow what objects own: no verb takes them. */
        cJSON_ArrayForEach(watch, json_member(status, "watches")) if (!json_text(watch, "owner")[0])
                print_candidate(json_text(watch, "name"), json_text(watch, "kind"), begun);
}

static void offer_listed(const struct place *place, const cJSON *status, const char *list, const char *begun)
{
        const cJSON *item;

        if (!place->watch)
                return;
        cJSON_ArrayForEach(item, json_member(status, list))
        {
                if (strcmp(json_text(item, "watch"), place->watch) == 0)
                        print_candidate(json_text(item, "key"), NULL, begun);
        }
}

static void offer_keys(const struct place *place, const char *begun)
{
        char *argument[] = {(char *)(uintptr_t)place->watch, (char *)(uintptr_t)begun, NULL};
        _cleanup_json_ cJSON *answer = ask_for_words(place, "keys", argument);
        const cJSON *key;

        cJSON_ArrayForEach(key, json_member(answer, "keys"))
                print_candidate(cJSON_IsString(key) ? key->valuestring : "", NULL, begun);
}

static void offer_troubled(const struct place *place, enum word word, const char *begun)
{
        _cleanup_json_ cJSON *status = ask_for_words(place, "status", NULL);

        if (word == WORD_FAILING)
                offer_listed(place, status, "failing", begun);
        else {
                offer_listed(place, status, "quarantine", begun);
                offer_listed(place, status, "doubtful", begun);
        }
}

static void offer_each(const char *const *candidate, const char *begun)
{
        for (; *candidate; candidate++)
                print_candidate(*candidate, NULL, begun);
}

static void offer_word(const struct place *place, enum word word, const char *begun)
{
        static const char *const format[] = {"wide", "json", "yaml", NULL};
        static const char *const state[] = {"failing", "waiting", "quarantined", NULL};

        switch (word) {
        case WORD_FILE:
                puts(":files");
                break;
        case WORD_FORMAT:
                offer_each(format, begun);
                break;
        case WORD_STATE:
                offer_each(state, begun);
                break;
        case WORD_WATCH:
                offer_watches(place, begun);
                break;
        case WORD_KEY:
                offer_keys(place, begun);
                break;
        case WORD_FAILING:
        case WORD_QUARANTINED:
                offer_troubled(place, word, begun);
                break;
        case WORD_FREE:
                break;
        }
}

static void offer_options(const struct place *place, const char *begun)
{
        FOREACH_ARRAY(option, place->line->option, place->line->option_count) {
                char name[64];

                snprintf(name, sizeof(name), "--%s", option->name);
                if (strchr(place->line->always, option->letter) ||
                    (place->verb && strchr(place->verb->options, option->letter)))
                        print_candidate(name, NULL, begun);
        }
}

static void offer_verbs(const struct place *place, const char *begun)
{
        for (size_t i = 0; i < place->line->verb_count; i++)
                print_candidate(place->line->verb[i].name, place->line->verb[i].what, begun);
}

#define PATIENCE_SECONDS 2

/* A user who pressed Tab does not wait for an operator that hangs. */
static void on_alarm(int number _unused_)
{
        _exit(EXIT_CODE_OK);
}

int ctl_complete(const struct command_line *line, const char *runtime_directory, int count, char **word)
{
        struct place place = {.line = line, .runtime_directory = runtime_directory};
        const char *begun = count > 0 ? word[count - 1] : "";

        (void)sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
        (void)alarm(PATIENCE_SECONDS);
        for (int i = 0; i + 1 < count; i++)
                pass_word(&place, word[i]);
        if (place.asking)
                offer_word(&place, find_option(line, place.asking)->word, begun);
        else if (begun[0] == '-' && !place.over)
                offer_options(&place, begun);
        else if (!place.verb)
                offer_verbs(&place, begun);
        else if (place.arguments < 2 && place.arguments < place.verb->arguments->most)
                offer_word(&place, place.verb->arguments->word[place.arguments], begun);
        return EXIT_CODE_OK;
}
