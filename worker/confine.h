/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Confines handlers: what an answer writes beside its own object must be of a kind, and in a namespace, that the
 * configuration names. This is judged before anything of the answer is written. Children that we have already may
 * be taken away: what an answer releases or leaves out is not judged.
 */
#include "worker/dependents/dependent.h"
#include "worker/run-state.h"

/* 0; negative: the run has ended, with an error that says what to add to the configuration. */
int confine_answer(struct run *run);
/*
 * Anybody who may write to an object may write to the lists on it. Of kinds that neither the configuration of any watch nor the
 * ledger's row knows, only the first few are looked for: enough for those that the configuration has dropped and the ledger has
 * lost. The others, and what is in a namespace that neither knows, are marked and left alone. Returns how many these are. what: "children", "patches".
 */
size_t confine_list(const struct run *run, struct dependent_list *list);
void confine_list_and_tell(const struct run *run, const char *what, struct dependent_list *list);
/* Whether the configuration of a watch, or the ledger's row, knows the kind. */
bool confine_knows(const struct run *run, const char *api_version, const char *kind);
