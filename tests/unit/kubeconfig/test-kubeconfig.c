/* SPDX-License-Identifier: Apache-2.0 */
/* Which kubeconfig counts, what is taken from it, and what is refused with its place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "kubeconfig/kubeconfig.h"

static char folder[] = "/tmp/reconciled-test-kubeconfig-XXXXXX";
static const char *const file_name[] = {"config",     "second",  "third",  "token",     "ca.pem",
                                        "client.pem", "key.pem", "ca.crt", "namespace", ".kube/config"};

#define PEM    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
#define PEM_64 "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="

static void write_file(const char *name, const char *text)
{
        FILE *file = fopen(name, "we");

        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
        assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
        (void)state;
        return mkdtemp(folder) && chdir(folder) == 0 && mkdir(".kube", 0700) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
        (void)state;
        return rmdir(".kube") == 0 && chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static int clean(void **state)
{
        (void)state;
        for (size_t i = 0; i < ELEMENTS(file_name); i++)
                unlink(file_name[i]);
        unsetenv("KUBECONFIG");
        unsetenv("KUBERNETES_SERVICE_HOST");
        unsetenv("KUBERNETES_SERVICE_PORT");
        setenv("HOME", folder, 1);
        setenv("RECONCILED_SERVICE_ACCOUNT_FOLDER", folder, 1);
        return 0;
}

static struct kubeconfig load(const char *path, const char *context)
{
        struct error error = ERROR_NONE;
        struct kubeconfig config;
        int r = kubeconfig_load(&(struct kubeconfig_options){path, context}, &config, &error);

        if (r < 0)
                fail_msg("%s", error_message(&error));
        assert_null(error.message);
        return config;
}

/* The message must hold all of `part`s, which end with NULL. */
static void refuse(const char *path, int expected, const char *const *part)
{
        struct error error = ERROR_NONE;
        struct kubeconfig config;
        int r = kubeconfig_load(&(struct kubeconfig_options){.path = path}, &config, &error);

        assert_int_equal(r, expected);
        for (; *part; part++)
                if (!strstr(error_message(&error), *part))
                        fail_msg("\"%s\" does not say \"%s\"", error_message(&error), *part);
        error_done(&error);
}

#define REFUSE(path, expected, ...) refuse(path, expected, (const char *const[]){__VA_ARGS__, NULL})

/* One cluster, one context, one user, with more lines for cluster and user. */
static void write_config(const char *name, const char *cluster, const char *user)
{
        char text[8192];

        snprintf(text, sizeof(text),
                 "apiVersion: v1\nkind: Config\ncurrent-context: prod\n"
                 "contexts:\n- {name: prod, context: {cluster: c, user: u, namespace: team}}\n"
                 "clusters:\n- name: c\n  cluster:\n    server: https://api.example.com:6443\n%s"
                 "users:\n- name: u\n  user:\n    dummy: x\n%s",
                 cluster, user);
        write_file(name, text);
}

/* ---- values */

static void test_token(void **state)
{
        struct kubeconfig config;

        (void)state;
        write_config("config", "", "    token: abc\n");
        config = load("config", NULL);
        assert_string_equal(config.server, "https://api.example.com:6443");
        assert_string_equal(config.token, "abc");
        assert_string_equal(config.default_namespace, "team");
        assert_string_equal(config.context, "prod");
        assert_false(config.insecure);
        assert_string_equal(config.certificate_authority, "");
        assert_string_equal(config.tls_server_name, "");
        assert_non_null(strstr(config.identity, "prod"));
        assert_non_null(strstr(config.identity, "user u"));
        assert_null(strstr(config.identity, "abc"));
        kubeconfig_done(&config);
        assert_null(config.token);
}

static void test_files_beside_the_kubeconfig(void **state)
{
        char path[64];
        struct kubeconfig config;

        (void)state;
        write_file("ca.pem", PEM);
        write_file("client.pem", PEM);
        write_file("key.pem", "-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n");
        write_file("token", " \n secret-token\r\n\n");
        write_config(
                "config", "    certificate-authority: ca.pem\n",
                "    client-certificate: client.pem\n    client-key: ./key.pem\n    tokenFile: token\n");
        snprintf(path, sizeof(path), "%s/config", folder);
        assert_int_equal(chdir("/"), 0); /* relative to the file, not to us */
        config = load(path, NULL);
        assert_int_equal(chdir(folder), 0);
        assert_string_equal(config.certificate_authority, PEM);
        assert_string_equal(config.client_certificate, PEM);
        assert_non_null(strstr(config.client_key, "EC PRIVATE KEY"));
        assert_string_equal(config.token, "secret-token");
        assert_null(strstr(config.identity, "secret"));
        kubeconfig_done(&config);
}

static void test_data_wins(void **state)
{
        struct kubeconfig config;

        (void)state;
        write_config("config",
                     "    certificate-authority: /nowhere\n    certificate-authority-data: " PEM_64 "\n"
                     "    tls-server-name: api.internal\n    proxy-url: http://proxy:3128\n",
                     "    username: admin\n    password: pw\n");
        config = load("config", NULL);
        assert_string_equal(config.certificate_authority, PEM);
        assert_string_equal(config.tls_server_name, "api.internal");
        assert_string_equal(config.proxy_url, "http://proxy:3128");
        assert_string_equal(config.username, "admin");
        assert_string_equal(config.password, "pw");
        assert_null(strstr(config.identity, "pw"));
        kubeconfig_done(&config);
}

static void test_token_file_wins(void **state)
{
        struct kubeconfig config;

        (void)state;
        write_file("token", "fresh");
        write_config("config", "", "    token: old\n    tokenFile: token\n");
        config = load("config", NULL);
        assert_string_equal(config.token, "fresh");
        kubeconfig_done(&config);
}

static void test_insecure(void **state)
{
        struct kubeconfig config;

        (void)state;
        write_config("config", "    insecure-skip-tls-verify: true\n", "");
        config = load("config", NULL);
        assert_true(config.insecure);
        kubeconfig_done(&config);
        write_config("config", "    insecure-skip-tls-verify: false\n", "");
        config = load("config", NULL);
        assert_false(config.insecure);
        kubeconfig_done(&config);
}

static void test_impersonation(void **state)
{
        static const char *const expected[][2] = {
                {"Impersonate-User", "admin"}, {"Impersonate-Uid", "u-1"},       {"Impersonate-Group", "g1"},
                {"Impersonate-Group", "g2"},   {"Impersonate-Extra-a%2Fb", "x"},
        };
        struct kubeconfig config;

        (void)state;
        write_config("config", "",
                     "    token: t\n    as: admin\n    as-uid: u-1\n    as-groups: [g1, g2]\n"
                     "    as-user-extra: {a/b: [x]}\n");
        config = load("config", NULL);
        assert_int_equal(config.header.count, ELEMENTS(expected));
        for (size_t i = 0; i < ELEMENTS(expected); i++) {
                assert_string_equal(config.header.pair[i].name, expected[i][0]);
                assert_string_equal(config.header.pair[i].value, expected[i][1]);
        }
        assert_non_null(strstr(config.identity, "as admin"));
        kubeconfig_done(&config);
}

static void test_exec(void **state)
{
        struct kubeconfig config, copy;

        (void)state;
        write_config(
                "config",
                "    extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: x, n: "
                "7}}]\n",
                "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: bin/fetch\n"
                "      args: [a, b]\n      env: [{name: N, value: v}]\n      interactiveMode: IfAvailable\n"
                "      provideClusterInfo: true\n      installHint: get it there\n");
        config = load("config", NULL);
        assert_string_equal(config.exec.command, "bin/fetch"); /* the kubeconfig stands in this folder */
        assert_string_equal(config.exec.argument[1], "b");
        assert_null(config.exec.argument[2]);
        assert_string_equal(config.exec.environment.pair[0].name, "N");
        assert_string_equal(config.exec.install_hint, "get it there");
        assert_string_equal(config.exec.cluster_config, "{\"audience\":\"x\",\"n\":7}");
        assert_true(config.exec.provide_cluster_info);
        assert_true(kubeconfig_equal(&config, &config));
        assert_int_equal(kubeconfig_copy(&config, &copy), 0);
        assert_false(kubeconfig_equal(&config, &copy));
        assert_string_equal(copy.server, config.server);
        kubeconfig_done(&copy);
        kubeconfig_done(&config);
}

#define EXEC_CONFIG "    extensions: [{name: client.authentication.k8s.io/exec, extension: %s}]\n"

static void test_exec_config(void **state)
{
        static const char *const expected[][2] = {
                {"[]", "[]"},
                {"[1, {a: b}]", "[1,{\"a\":\"b\"}]"},
                {"{}", "{}"},
                {"text", "\"text\""},
                {"{on: true, nothing: null, quoted: \"7\"}",
                 "{\"on\":true,\"nothing\":null,\"quoted\":\"7\"}"},
                {"{a: &x [y], b: *x}", "{\"a\":[\"y\"],\"b\":[\"y\"]}"},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(expected); i++) {
                char cluster[256];
                struct kubeconfig config;

                snprintf(cluster, sizeof(cluster), EXEC_CONFIG, expected[i][0]);
                write_config("config", cluster, "    token: t\n");
                config = load("config", NULL);
                assert_string_equal(config.exec.cluster_config, expected[i][1]);
                kubeconfig_done(&config);
        }
}

static void test_empty_is_absent(void **state)
{
        struct kubeconfig config;

        (void)state;
        write_config("config", "    certificate-authority-data: \"\"\n    proxy-url: null\n",
                     "    exec: null\n    as: \"\"\n    as-groups: []\n    token: t\n");
        config = load("config", NULL);
        assert_string_equal(config.token, "t");
        assert_string_equal(config.proxy_url, "");
        kubeconfig_done(&config);
}

/* ---- what is refused */

static const struct wrong {
        const char *cluster, *user, *text, *place;
} wrong[] = {
        {"", "    exec: {command: aws}\n", "is missing", "config:14: user.exec.apiVersion"},
        {"", "    exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: a}\n", "is neither",
         "config:14: user.exec.apiVersion"},
        {"", "    exec: {apiVersion: client.authentication.k8s.io/v1, command: a}\n", "Never or IfAvailable",
         "config:14: user.exec.interactiveMode"},
        {"",
         "    exec: {apiVersion: client.authentication.k8s.io/v1beta1, interactiveMode: Always, command: "
         "a}\n",
         "needs a terminal", "config:14: user.exec.interactiveMode"},
        {"", "    exec: {apiVersion: client.authentication.k8s.io/v1beta1}\n", "is missing",
         "config:14: user.exec.command"},
        {"", "    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: a, args: b}\n", "a list",
         "config:14: user.exec.args"},
        {"", "    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: a, env: [{value: b}]}\n",
         "not a name", "config:14: user.exec.env.name"},
        {"", "    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: a}\n    token: t\n",
         "beside another credential", "config:13: user.exec"},
        {"", "    as-groups: [g]\n", "`as`, which is missing", "config:14: as-groups"},
        {"", "    as-uid: u\n", "`as`, which is missing", "config:14: as-uid"},
        {"", "    as: a\n    as-groups: g\n", "a list is expected", "config:15: user.as-groups"},
        {"", "    as: \"a\\r\\nX: y\"\n", "on one line", "config:14: user.as"},
        {"", "    auth-provider: {name: gcp}\n", "exec", "config:14: user.auth-provider"},
        {"", "    token: t\n    username: u\n    password: p\n", "both a token and a username",
         "config:13: user"},
        {"", "    username: u\n", "missing beside username", "config:13: user.password"},
        {"", "    password: p\n", "missing beside password", "config:13: user.username"},
        {"", "    client-certificate-data: " PEM_64 "\n", "missing beside client-certificate",
         "user.client-key"},
        {"", "    client-key-data: " PEM_64 "\n", "missing beside client-key", "user.client-certificate"},
        {"", "    client-key-data: '****'\n", "is not base64", "config:14: client-key-data"},
        {"", "    client-key-data: AAAA\n", "is not base64 of a text", "config:14: client-key-data"},
        {"", "    client-certificate-data: aGVsbG8=\n", "holds no PEM block",
         "config:14: client-certificate-data"},
        {"", "    client-key-data: LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRVktLS0tLQo=\n", "is encrypted",
         "config:14: client-key-data"},
        {"", "    client-certificate: absent.pem\n", "absent.pem: cannot be read",
         "config:14: client-certificate"},
        {"", "    tokenFile: absent\n", "absent: cannot be read", "config:14: user.tokenFile"},
        {"", "    tokenFile: .kube\n", "is not a regular file", "config:14: user.tokenFile"},
        {"", "    token: \"a\\r\\nX-Evil: 1\"\n", "characters that no token can have",
         "config:14: user.token"},
        {"    certificate-authority: absent.pem\n", "", "absent.pem", "config:10: certificate-authority"},
        {"    certificate-authority-data: " PEM_64 "\n    insecure-skip-tls-verify: true\n", "",
         "contradicts", "insecure-skip-tls-verify"},
        {"    insecure-skip-tls-verify: maybe\n", "", "neither true nor false",
         "config:10: insecure-skip-tls-verify"},
        {"    proxy-url: ftp://user:hush@x\n", "", "must start with", "config:10: cluster.proxy-url"},
        {"    extensions: [{name: client.authentication.k8s.io/exec, extension: &a {x: *a, y: *a}}]\n", "",
         "or contains itself", "config:10: cluster.extensions"},
        {"    broken: [\n", "", "is not valid YAML", "config:"},
};

static void test_refused(void **state)
{
        (void)state;
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                write_config("config", wrong[i].cluster, wrong[i].user);
                print_message("  %s\n", wrong[i].text);
                REFUSE("config",
                       strstr(wrong[i].text, "cannot be read") || strstr(wrong[i].text, "absent") ? -ENOENT
                                                                                                  : -EINVAL,
                       wrong[i].text, wrong[i].place);
        }
}

static void test_no_secret_in_a_message(void **state)
{
        struct error error = ERROR_NONE;
        struct kubeconfig config;

        (void)state;
        write_config("config", "    proxy-url: ftp://user:hush@x\n", "");
        assert_int_equal(kubeconfig_load(&(struct kubeconfig_options){.path = "config"}, &config, &error),
                         -EINVAL);
        assert_null(strstr(error.message, "hush"));
        error_done(&error);
        write_config("config", "", "    token: \"hush hush\"\n");
        assert_int_equal(kubeconfig_load(&(struct kubeconfig_options){.path = "config"}, &config, &error),
                         -EINVAL);
        assert_null(strstr(error.message, "hush"));
        error_done(&error);
}

static void test_references(void **state)
{
        static const char *const rest =
                "\nclusters:\n- name: c\n  cluster: {server: https://x}\nusers: []\n";
        static const struct {
                const char *head, *text;
        } row[] = {
                {"contexts: []", "current-context: is missing"},
                {"current-context: gone\ncontexts: []", "no context \"gone\""},
                {"current-context: p\ncontexts:\n- {name: p, context: {user: u}}",
                 "config:3: context.cluster: is missing"},
                {"current-context: p\ncontexts:\n- {name: p, context: {cluster: zz}}",
                 "config:3: context.cluster: there is no cluster \"zz\""},
                {"current-context: p\ncontexts:\n- {name: p, context: {cluster: c, user: zz}}",
                 "config:3: context.user: there is no user \"zz\""},
        };
        char text[1024];

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                snprintf(text, sizeof(text), "%s%s", row[i].head, rest);
                write_file("config", text);
                REFUSE("config", -EINVAL, row[i].text);
        }
}

static void test_servers(void **state)
{
        static const char *const bad[] = {"ftp://x",       "api.example.com", "https://u:p@x", "https://",
                                          "https:///path", "\"https://x y\"", "https://x?a=b"};
        static const char *const good[] = {"http://127.0.0.1:1", "https://[::1]:6443", "https://x/k8s/c/",
                                           "https://x/a@b"};
        char text[512];

        (void)state;
        for (size_t i = 0; i < ELEMENTS(bad) + ELEMENTS(good); i++) {
                const char *server = i < ELEMENTS(bad) ? bad[i] : good[i - ELEMENTS(bad)];

                snprintf(text, sizeof(text),
                         "current-context: p\ncontexts:\n- {name: p, context: {cluster: c}}\n"
                         "clusters:\n- name: c\n  cluster:\n    server: %s\n",
                         server);
                write_file("config", text);
                if (i < ELEMENTS(bad)) {
                        REFUSE("config", -EINVAL, "config:7: cluster.server");
                } else {
                        struct kubeconfig config = load("config", NULL);

                        assert_string_equal(config.server, server);
                        kubeconfig_done(&config);
                }
        }
}

static void test_not_a_mapping(void **state)
{
        (void)state;
        write_file("config", "- a\n");
        REFUSE("config", -EINVAL, "config:1: is not a kubeconfig");
        write_file("config", "hello\n");
        REFUSE("config", -EINVAL, "config:1: is not a kubeconfig");
        write_file("config", "contexts: 5\nclusters: {}\ncurrent-context: p\n");
        REFUSE("config", -EINVAL, "no context \"p\"");
}

/* Half a minute and more in libyaml, while nobody hears a heartbeat. */
static void test_deep(void **state)
{
        static char text[512 * 1024];

        (void)state;
        memset(text, '[', sizeof(text) - 1);
        write_file("config", text);
        REFUSE("config", -EINVAL, "config: is not a kubeconfig: too many nested brackets");
}

static void test_huge(void **state)
{
        FILE *file;

        (void)state;
        write_config("config", "", "    tokenFile: token\n");
        file = fopen("token", "we");
        assert_non_null(file);
        for (int i = 0; i < 20000; i++)
                fputc('t', file);
        fclose(file);
        REFUSE("config", -EINVAL, "config:14: user.tokenFile", "larger than 16 KiB");
        assert_int_equal(truncate("token", 2 * 1024 * 1024), 0);
        REFUSE("config", -EFBIG, "config:14: user.tokenFile", "larger than 1 MiB");
        assert_int_equal(truncate("token", 0), 0); /* somebody is just writing it */
        REFUSE("config", -EINVAL, "config:14: user.tokenFile", "holds no token");
}

/* ---- which files */

static void test_explicit(void **state)
{
        (void)state;
        write_config("second", "", "    token: t\n");
        setenv("KUBECONFIG", "second", 1);
        REFUSE("config", -ENOENT, "config: cannot be read");
        write_file("config", "");
        REFUSE("config", -EINVAL, "config: is empty");
        write_file("config", "# nothing but words\n");
        REFUSE("config", -EINVAL, "config: is empty");
        /* not merged */
        write_file("config", "current-context: prod\n");
        REFUSE("config", -EINVAL, "no context \"prod\"");
}

static void test_list(void **state)
{
        struct kubeconfig config;

        (void)state;
        write_file("second", "current-context: b\n"
                             "contexts:\n- {name: b, context: {cluster: c, user: first}}\n"
                             "clusters:\n- {name: c, cluster: {server: 'https://second'}}\n");
        write_file("third",
                   "current-context: a\n"
                   "contexts:\n- {name: a, context: {cluster: c}}\n- {name: b, context: {cluster: zz}}\n"
                   "clusters:\n- {name: c, cluster: {server: 'https://third', proxy-url: 'http://p'}}\n"
                   "users:\n- {name: first, user: {token: of-third}}\n");
        write_file("token", "");
        setenv("KUBECONFIG", "absent::token:second:third", 1);
        config = load(NULL, NULL);
        assert_string_equal(config.context, "b");             /* scalars: the first that sets it */
        assert_string_equal(config.server, "https://second"); /* maps: the first file wins whole */
        assert_string_equal(config.proxy_url, "");
        assert_string_equal(config.token, "of-third");
        kubeconfig_done(&config);
        config = load("", "a"); /* cluster.context of the configuration */
        assert_string_equal(config.context, "a");
        kubeconfig_done(&config);
        write_file("token", "{");
        REFUSE(NULL, -EINVAL, "token:", "is not valid YAML");
}

static void test_relative_to_its_own_file(void **state)
{
        struct kubeconfig config;
        char list[128];

        (void)state;
        write_file("token", "of-the-folder");
        write_file(".kube/config",
                   "current-context: p\ncontexts:\n- {name: p, context: {cluster: c, user: u}}\n"
                   "clusters:\n- {name: c, cluster: {server: 'https://x'}}\n");
        write_file("second", "users:\n- {name: u, user: {tokenFile: token}}\n");
        snprintf(list, sizeof(list), "%s/.kube/config:%s/second", folder, folder);
        setenv("KUBECONFIG", list, 1);
        assert_int_equal(chdir("/"), 0);
        config = load(NULL, NULL);
        assert_int_equal(chdir(folder), 0);
        assert_string_equal(config.token, "of-the-folder");
        kubeconfig_done(&config);
}

static void test_home(void **state)
{
        struct kubeconfig config;

        (void)state;
        write_config(".kube/config", "", "    token: home\n");
        config = load(NULL, NULL);
        assert_string_equal(config.token, "home");
        kubeconfig_done(&config);
        setenv("KUBECONFIG", "absent", 1); /* replaces the default file, even when there is none */
        REFUSE(NULL, -ENOENT, "no kubeconfig was found");
}

static void test_nothing(void **state)
{
        (void)state;
        REFUSE(NULL, -ENOENT, "cluster.kubeconfig", "$KUBECONFIG", "~/.kube/config",
               "KUBERNETES_SERVICE_HOST");
        unsetenv("HOME");
        REFUSE(NULL, -ENOENT, "no kubeconfig was found");
}

/* ---- in a pod */

static void test_in_cluster(void **state)
{
        struct kubeconfig config;

        (void)state;
        setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
        REFUSE(NULL, -EINVAL, "KUBERNETES_SERVICE_PORT");
        setenv("KUBERNETES_SERVICE_PORT", "443", 1);
        REFUSE(NULL, -ENOENT, "/token: cannot be read");
        write_file("token", "pod-token\n");
        REFUSE(NULL, -ENOENT, "/ca.crt: cannot be read");
        write_file("ca.crt", "garbage");
        REFUSE(NULL, -EINVAL, "/ca.crt: holds no PEM block");
        write_file("ca.crt", PEM);
        config = load(NULL, NULL);
        assert_string_equal(config.server, "https://[fd00::1]:443");
        assert_string_equal(config.token, "pod-token");
        assert_string_equal(config.certificate_authority, PEM);
        assert_string_equal(config.default_namespace, "default");
        assert_string_equal(config.context, "");
        kubeconfig_done(&config);

        write_file("namespace", "team\n");
        setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
        config = load(NULL, NULL);
        assert_string_equal(config.server, "https://10.0.0.1:443");
        assert_string_equal(config.default_namespace, "team");
        kubeconfig_done(&config);

        write_config(".kube/config", "", "    token: home\n"); /* a file comes first */
        config = load(NULL, NULL);
        assert_string_equal(config.token, "home");
        kubeconfig_done(&config);
}

static void test_equal(void **state)
{
        struct kubeconfig a, b;

        (void)state;
        write_config("config", "", "    token: one\n");
        a = load("config", NULL);
        b = load("config", NULL);
        assert_true(kubeconfig_equal(&a, &b));
        kubeconfig_done(&b);
        write_config("config", "", "    token: two\n");
        b = load("config", NULL);
        assert_false(kubeconfig_equal(&a, &b));
        kubeconfig_done(&a);
        kubeconfig_done(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
        const struct CMUnitTest test[] = {
                TEST(test_token),         TEST(test_files_beside_the_kubeconfig),
                TEST(test_data_wins),     TEST(test_token_file_wins),
                TEST(test_insecure),      TEST(test_impersonation),
                TEST(test_exec),          TEST(test_empty_is_absent),
                TEST(test_refused),       TEST(test_no_secret_in_a_message),
                TEST(test_references),    TEST(test_servers),
                TEST(test_not_a_mapping), TEST(test_deep),
                TEST(test_huge),          TEST(test_explicit),
                TEST(test_list),          TEST(test_relative_to_its_own_file),
                TEST(test_home),          TEST(test_nothing),
                TEST(test_in_cluster),    TEST(test_equal),
                TEST(test_exec_config),
        };

        return cmocka_run_group_tests(test, make_folder, remove_folder);
}
