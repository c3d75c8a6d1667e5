/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The words of reconciledctl's command line, for main() and for completion in a shell. */
#include <stddef.h>

struct options;

/* The kind of word at a place of the command line, for completion. */
enum word {
        WORD_FREE,
        WORD_FILE,
        WORD_FORMAT,
        WORD_STATE, /* of objects in trouble */
        WORD_WATCH,
        WORD_KEY,         /* keys of the watch before it: all that were ever handed to a handler */
        WORD_FAILING,     /* those that have failed */
        WORD_QUARANTINED, /* those that are in quarantine, or doubtful */
};

struct ctl_option {
        int letter;
        const char *name;
        const char *argument; /* in words; NULL: it takes none */
        size_t place;     /* in struct options, of a bool, or of the argument's text; 0: main() takes it */
        enum word word;   /* its argument */
        const char *what; /* NULL: help names it apart */
};

struct arguments {
        int least, most;
        enum word word[2];
        const char *takes;
};

struct verb {
        const char *name, *what;
        const char *options; /* the letters of the options that it takes */
        const struct arguments *arguments;
        int (*run)(const struct options *options, int count, char **argument);
        const char *synopsis, *help; /* for `VERB --help` */
};

struct command_line {
        const struct ctl_option *option;
        size_t option_count;
        const char *letters; /* the options that have a short form, for getopt() */
        const char *always;  /* letters of the options that every verb takes */
        const struct verb *verb;
        size_t verb_count;
};

/* NULL if there is none. */
const struct ctl_option *find_option(const struct command_line *line, int letter);
const struct verb *find_verb(const struct command_line *line, const char *name);

/* Help of the program, and of each verb. */
void help_all(const struct command_line *line);
void help_verb(const struct command_line *line, const struct verb *verb);
/* The verb that this word was probably meant to be; NULL if none is similar. */
const char *help_suggest(const struct command_line *line, const char *word);
