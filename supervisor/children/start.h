/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Starting children: the spawner is asked, and the channel is opened. */

struct child_slot;
struct supervisor;

int children_new(struct supervisor *supervisor);   /* the slots; -ENOMEM */
int children_start(struct supervisor *supervisor); /* all; negative errno */
/* Negative errno, logged; fatal where the spawner has failed. */
int child_start(struct child_slot *child);
