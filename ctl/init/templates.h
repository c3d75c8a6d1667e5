/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files of ctl/init/templates, without .in, as tools/embed has put them into the program. In a text, @name@
 * stands for a value (init-values.c). A line that begins with "@?WORD " is kept, without that prefix, if the
 * options make WORD true; with "@?!WORD " if they do not. A line with nothing but an empty value is left out.
 */
struct template
{
        const char *name, *text; /* NULL: the end */
};

extern const struct template templates[];
