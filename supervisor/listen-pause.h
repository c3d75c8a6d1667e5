/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * While every worker has runs to go on with, no worker waits for us: then ends of runs are heard together.
 * Woken for each of them, we take the processor from the workers, and to be woken costs both sides more than
 * to tell of the end and to write it down.
 *
 * A worker must never be without work meanwhile. So a pause lasts for half of the time that the worker with
 * the least work is expected to need, and never longer than a millisecond. A worker's own end is heard of at
 * once.
 */

struct supervisor;

void listen_pause_maybe(struct supervisor *supervisor); /* at the end of a turn */
