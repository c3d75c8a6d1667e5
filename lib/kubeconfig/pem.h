/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks of certificates, keys and tokens before their first use. Private to lib/kubeconfig/. */

/* 0, -EINVAL (no base64, or a NUL in the result), -ENOMEM. The caller owns and wipes the result. */
int pem_decode_base64(const char *input, char **ret);

/* NULL, or what is wrong, to follow the name of the file or key. */
const char *pem_problem(const char *text);
const char *token_problem(const char *token);
