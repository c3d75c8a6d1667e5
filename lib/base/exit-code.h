/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Exit codes of the supervisor and of its children (sysexits.h numbers). docs and units/ repeat this table:
 * RestartPreventExitStatus= names those that would only fail again.
 */
enum exit_code {
        EXIT_CODE_OK = 0,             /* asked to stop */
        EXIT_CODE_USAGE = 64,         /* wrong command line; not restarted */
        EXIT_CODE_UNAVAILABLE = 69,   /* API server not reachable past the watch deadline */
        EXIT_CODE_SOFTWARE = 70,      /* a child crashed, hung or broke the protocol; unrecoverable error */
        EXIT_CODE_IO = 74,            /* ledger or store cannot be written */
        EXIT_CODE_LEAD_LOST = 75,     /* another replica may lead now */
        EXIT_CODE_NO_PERMISSION = 77, /* the API server refuses us (401, 403) past the deadline */
        EXIT_CODE_CONFIGURATION = 78, /* configuration wrong; not restarted */
};

/* The exit code for a negative errno, where `otherwise` names the usual cause. A shortage or a broken disk
 * has a code of its own: it may pass, so the operator is to be started again. */
enum exit_code exit_code_for(int error, enum exit_code otherwise);

/* "SOFTWARE", or NULL for a number that has no name. */
const char *exit_code_name(int code);
