/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Messages for systemd and, in a container, for the kubelet: READY, STATUS in words, STOPPING, how much
 * longer the stop may take, and the cause of a failure.
 */

struct supervisor;

/* The file from which the kubelet takes the reason of a container's end. */
#define TERMINATION_LOG "/dev/termination-log"

/* Sends READY=1 after the start and after a reload. Fatal if that fails. */
void notify_ready(struct supervisor *supervisor);
void notify_status(struct supervisor *supervisor); /* where it is another one, and not too often */
void notify_stopping(struct supervisor *supervisor);
void notify_reloading(const struct supervisor *supervisor);
/* Status shows why the file as it is now was not taken. */
void notify_note_refused(struct supervisor *supervisor, const char *why);
/* The reload is over, and the old configuration stays in force. */
void notify_not_reloaded(struct supervisor *supervisor, const char *why);
/* Reports to systemd and to the kubelet that the operator fails. */
void notify_failed(int exit_code, const char *cause);
/* Something inside is broken so that no end in order can be promised: systemd ends everything (SIGABRT). */
void notify_fault(const char *text, int error);
