/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The help of reconciledctl: of the program, and of each verb. */
#include "ctl/verb.h"

void help_all(const struct command_line *line);
void help_verb(const struct command_line *line, const struct verb *verb);
/* The verb that was meant by this word; NULL: nothing is near. */
const char *help_suggest(const struct command_line *line, const char *word);
