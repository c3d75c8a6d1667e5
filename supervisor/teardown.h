/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The end, in order or not. Fatal: every child gets SIGTERM at once, SIGKILL after a short grace (a
 * stopped one hears nothing else), and processes that handlers left behind come to us, the subreaper, and
 * are ended too. In order: workers first, so that their runs may finish and be recorded; then the rest.
 * Every wait has a bound.
 */

struct supervisor;

/* Ends the children, if supervisor_fatal() was called: blames the object, tells systemd. Not in the
 * middle of an input of the controller. */
void teardown_begin(struct supervisor *supervisor);
/* A stop in order; at once if one has begun. */
void stop_gracefully(struct supervisor *supervisor);
/* A child is gone: goes on with the end, if there is one. Leaves the loop when no child is left. */
void teardown_continue(struct supervisor *supervisor);
