/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Confines handlers: what an answer writes beside its own object must be of a kind, and in a namespace, that the configuration
 * names. This is judged before anything of the answer is written. What is ours already may be taken away all the same: what an
 * answer releases, or leaves out, is not judged.
 */
#include "worker/run/run.h"

/* false: the run was ended, with an error that says what to add to the configuration. */
bool confine_answer(struct run *run);
