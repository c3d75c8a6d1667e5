/* SPDX-License-Identifier: Apache-2.0 */
/*
 *     as-user [UID] -- PROGRAM [ARGUMENT]...
 *
 * Becomes the user UID of the group UID, without other groups, capabilities or a way to get them again, and then PROGRAM, which ends
 * with its parent. Without a UID it stays who it is. setpriv(1) does the same in twice the processor time, several times a test.
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAILED = 127 };

static int become(unsigned user)
{
        /* As in <linux/capability.h>, which is not among the headers of musl. */
        const struct {
                uint32_t version;
                int pid;
        } header = {.version = 0x20080522};
        const uint32_t none[6] = {0};

        for (unsigned long capability = 0; capability < 64; capability++)
                if (prctl(PR_CAPBSET_DROP, capability, 0UL, 0UL, 0UL) < 0 &&
                    errno != EINVAL) /* the kernel has no such one */
                        return -1;
        if (setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0)
                return -1;
        return syscall(SYS_capset, &header, none) < 0 ? -1 : prctl(PR_SET_NO_NEW_PRIVS, 1UL, 0UL, 0UL, 0UL);
}

int main(int argc, char **argv)
{
        const int first = argc > 1 && strcmp(argv[1], "--") != 0 ? 3 : 2;

        if (argc <= first || strcmp(argv[first - 1], "--") != 0) {
                fputs("as-user [UID] -- PROGRAM [ARGUMENT]...\n", stderr);
                return FAILED;
        }
        if (first == 3 && become((unsigned)strtoul(argv[1], NULL, 10)) < 0) {
                fprintf(stderr, "as-user %s: %s\n", argv[1], strerror(errno));
                return FAILED;
        }
        /* Last: a change of the user takes it back. */
        if (prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL) == 0)
                execvp(argv[first], argv + first);
        fprintf(stderr, "as-user: %s: %s\n", argv[first], strerror(errno));
        return FAILED;
}
