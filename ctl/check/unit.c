/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/check/unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/temporary.h"

#define MANAGER     "org.freedesktop.systemd1"
#define CREDENTIALS "/run/credentials/"

/* Where systemd looks for a credential that is named without a path. */
static const char *const STORE[] = {"/run/credentials/@system", "/etc/credstore", "/run/credstore",
                                    "/usr/local/lib/credstore", "/usr/lib/credstore"};
#define STORE_DEFAULT "/etc/credstore"

static void bus_unref(sd_bus **bus)
{
        sd_bus_flush_close_unref(*bus);
}

/* The name of the unit whose ExecStart= reads this configuration: *ret, or NULL where it is none. */
static int unit_of(const char *config, char **ret, struct error *error)
{
        _cleanup_free_ char *path = config ? realpath(config, NULL) : NULL;
        static const char folder[] = RECONCILED_SYSCONFDIR "/", suffix[] = ".yaml";
        const char *name;
        size_t length;

        if (config && (!path || strncmp(path, folder, sizeof(folder) - 1) != 0))
                return 0;
        name = path ? path + sizeof(folder) - 1 : "reconciled.yaml";
        length = strlen(name);
        if (strchr(name, '/') || length < sizeof(suffix) || strcmp(name + length - 5, suffix) != 0)
                return 0;
        length -= sizeof(suffix) - 1;
        if (length == 10 && strncmp(name, "reconciled", 10) == 0) {
                *ret = strdup("reconciled.service");
                return 0;
        }
        if (length > UNIT_INSTANCE_MAX)
                return error_set(error, -EINVAL,
                                 "reconciled@%.*s.service cannot start: the name of an instance has at most "
                                 "%d characters, and this one has %zu; rename the file",
                                 (int)length, name, UNIT_INSTANCE_MAX, length);
        *ret = format_string("reconciled@%.*s.service", (int)length, name);
        return 0;
}

/* The unit's $KUBECONFIG as systemd would set it; NULL if the unit sets none or is unknown. */
static char *kubeconfig_of(sd_bus *bus, const char *object)
{
        _cleanup_free_ char *state = NULL;
        char **environment = NULL, *found = NULL;

        if (sd_bus_get_property_string(bus, MANAGER, object, MANAGER ".Unit", "LoadState", NULL, &state) <
                    0 ||
            strcmp(state, "loaded") != 0 ||
            sd_bus_get_property_strv(bus, MANAGER, object, MANAGER ".Service", "Environment", NULL,
                                     &environment) < 0)
                return NULL;
        for (size_t i = 0; environment && environment[i]; i++) {
                if (strncmp(environment[i], "KUBECONFIG=", 11) == 0) {
                        free(found);
                        found = strdup(environment[i] + 11);
                }
                free(environment[i]);
        }
        free(environment);
        return found;
}

/* The file that systemd would take, else the usual path. The caller owns it. */
static char *source_of(const char *named)
{
        if (named[0] == '/')
                return strdup(named);
        for (size_t i = 0; i < ELEMENTS(STORE); i++) {
                char *path = format_string("%s/%s", STORE[i], named);

                if (!path || access(path, F_OK) == 0)
                        return path;
                free(path);
        }
        return format_string(STORE_DEFAULT "/%s", named);
}

/* Links a credential of LoadCredential= beside the others: when the unit runs they share a folder, and paths in
 * a kubeconfig are relative to it. */
static int take_credential(struct unit_credential *credential, const char *wanted, const char *id,
                           const char *named)
{
        _cleanup_free_ char *source = source_of(named), *link = NULL;

        if (!source)
                return -ENOMEM;
        link = format_string("%s/%s", credential->folder, id);
        if (!link)
                return -ENOMEM;
        if (symlink(source, link) < 0)
                return errno == EEXIST ? 0 : -errno;
        if (strcmp(id, wanted) == 0) {
                credential->source = TAKE_PTR(source);
                credential->path = TAKE_PTR(link);
        }
        return 0;
}

static int take_all(struct unit_credential *credential, sd_bus *bus, const char *object, const char *wanted)
{
        sd_bus_message *reply = NULL;
        const char *id, *named;
        size_t count = 0;
        int r = sd_bus_get_property(bus, MANAGER, object, MANAGER ".Service", "LoadCredential", NULL, &reply,
                                    "a(ss)");

        r = r < 0 ? r : sd_bus_message_enter_container(reply, 'a', "(ss)");
        while (r >= 0 && (r = sd_bus_message_read(reply, "(ss)", &id, &named)) > 0) {
                r = take_credential(credential, wanted, id, named);
                count++;
        }
        sd_bus_message_unref(reply);
        if (r >= 0 && count == 1 && credential->source)
                r = text_replace(&credential->path, credential->source);
        return r;
}

/* Takes the credentials of a unit that runs, also those that are set, or encrypted: `place` has them all, as
 * files. */
static void take_present(const struct unit_credential *credential, const char *place)
{
        DIR *directory = opendir(place);
        struct dirent *entry;

        while (directory && (entry = readdir(directory))) {
                _cleanup_free_ char *source = NULL, *link = NULL;

                if (entry->d_name[0] == '.')
                        continue;
                source = format_string("%s%s", place, entry->d_name);
                link = format_string("%s/%s", credential->folder, entry->d_name);
                if (source && link)
                        (void)!symlink(source, link); /* what is there is named by LoadCredential= */
        }
        if (directory)
                closedir(directory);
}

static int find_credential(struct unit_credential *credential, struct error *error)
{
        int taken;

        _cleanup_(bus_unref) sd_bus *bus = NULL;
        _cleanup_free_ char *object = NULL, *path = NULL, *place = NULL;
        size_t length;
        int r;

        if (sd_bus_open_system(&bus) < 0 ||
            sd_bus_path_encode("/org/freedesktop/systemd1/unit", credential->unit, &object) < 0)
                return 0;
        path = kubeconfig_of(bus, object);
        if (!path || !path[0])
                return 0;
        place = format_string(CREDENTIALS "%s/", credential->unit);
        if (!place)
                return 0;
        length = strlen(place);
        if (strncmp(path, place, length) != 0 || strchr(path + length, '/')) {
                credential->source = strdup(path);
                credential->path = strdup(path);
                return credential->source && credential->path;
        }
        r = temporary_folder_new(false, &credential->folder, error);
        if (r < 0)
                return r;
        taken = take_all(credential, bus, object, path + length);
        take_present(credential, place);
        return taken >= 0 && credential->source;
}

int unit_credential_find(const char *config, struct unit_credential *ret, struct error *error)
{
        struct unit_credential credential = {0};
        int r = geteuid() == 0 && sd_booted() > 0 && !getenv("CREDENTIALS_DIRECTORY")
                        ? unit_of(config, &credential.unit, error)
                        : 0;

        if (r >= 0 && credential.unit)
                r = find_credential(&credential, error);
        if (r == 1 && credential.source && access(credential.source, R_OK) < 0)
                r = error_set(
                        error, -errno,
                        "%s: %s; %s takes its kubeconfig from there (LoadCredential= or Environment=, see "
                        "`systemctl cat %s`)",
                        credential.source, strerror(errno), credential.unit, credential.unit);
        if (r == 1)
                *ret = credential;
        else
                unit_credential_done(&credential);
        return r;
}

void unit_credential_use(const struct unit_credential *credential)
{
        if (credential->folder)
                (void)setenv("CREDENTIALS_DIRECTORY", credential->folder, 1);
}

void unit_credential_done(struct unit_credential *credential)
{
        temporary_folder_remove(credential->folder);
        free(credential->unit);
        free(credential->source);
        free(credential->path);
        free(credential->folder);
        *credential = (struct unit_credential){0};
}
