/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files and texts that hold secrets: what is read is wiped before its memory is freed. */
#include "base/error.h"

/* Reads a small file whole (at most 1 MiB; no NUL in it). 0; -EINVAL, -EFBIG or the errno of the file, with
 * its path in the error. The caller owns and wipes the result. */
int secret_read_file(const char *path, char **ret, struct error *error);
/* Reads a token, without the white space around it. An empty one is an error (-EINVAL): somebody is just
 * writing it. The caller owns and wipes the result. */
int secret_read_token(const char *path, char **ret, struct error *error);
/* Overwrites and frees the text, and sets it to NULL, which it may be already. */
void secret_wipe(char **secret);

/* Checks of certificates, keys and tokens before their first use. */
/* 0, -EINVAL (no base64, or a NUL in the result), -ENOMEM. The caller owns and wipes the result. */
int pem_decode_base64(const char *input, char **ret);

/* NULL, or what is wrong, to follow the name of the file or key. */
const char *pem_problem(const char *text);
const char *token_problem(const char *token);
