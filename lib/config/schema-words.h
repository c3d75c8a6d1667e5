/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The purpose of each key of the configuration, in a sentence or two, as an editor shows it.
 * man/reconciled.yaml.5 says more.
 */
struct config_words {
        const char *key;  /* "watches[].handler.timeout"; NULL ends the list */
        const char *text; /* defaults and bounds are in lib/config/table.c and in the defaults of config.c */
};

extern const struct config_words config_words[];
