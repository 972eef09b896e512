/*
 * A model in C without any library: the protocol alone suffices. Three actors in a ring pass a token. The bug: an actor that waited
 * too long makes a new token, though the old one may only be slow.
 *
 *     cc -O2 -o ring sdk/examples/ring.c
 *     demi-lineage model check -- ./ring
 *     demi-lineage fuzz --scenario sdk/examples/ring.toml --seed 1 --out found
 *
 * A state is 1 for an actor that holds a token, else 0.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ACTORS[] = {"a", "b", "c"};
enum { MEMBERS = 3 };

/* The end of the JSON value that begins at `at`: behind its last character. */
static const char *end_of(const char *at) {
    int depth = 0, quoted = 0;
    for (; *at; at++) {
        if (quoted) {
            if (*at == '\\' && at[1]) at++;
            else if (*at == '"') quoted = 0;
        } else if (*at == '"') quoted = 1;
        else if (*at == '{' || *at == '[') depth++;
        else if (*at == '}' || *at == ']') {
            if (depth == 0) return at;
            depth--;
        } else if (*at == ',' && depth == 0) return at;
    }
    return at;
}

/* The value of a key of the object at `object`, or NULL. Requests are written without white space. */
static const char *get(const char *object, const char *key) {
    size_t length = strlen(key);
    for (const char *at = object + 1; *at == '"'; ) {
        const char *name = at + 1, *close = name;
        while (*close && *close != '"') close += *close == '\\' && close[1] ? 2 : 1;
        if (!*close || close[1] != ':') return NULL;
        const char *value = close + 2;
        if ((size_t)(close - name) == length && memcmp(name, key, length) == 0) return value;
        at = end_of(value);
        if (*at != ',') return NULL;
        at++;
    }
    return NULL;
}

/* Whether the value is this string. */
static int is(const char *value, const char *text) {
    size_t length = strlen(text);
    return value && *value == '"' && strncmp(value + 1, text, length) == 0 && value[1 + length] == '"';
}

static void answer(const char *question) {
    const char *what = get(question, "do");
    const char *patience = "{\"set\":{\"timer\":\"patience\",\"message\":{\"type\":\"Impatient\"}}}";
    if (is(what, "check")) {
        const char *seen = get(question, "seen");
        int holders[MEMBERS], count = 0;
        for (int n = 0; n < MEMBERS; n++) {
            const char *state = seen ? get(seen, ACTORS[n]) : NULL;
            if (state && *state == '1') holders[count++] = n;
        }
        if (count < 2) {
            printf("{\"violations\":[]}");
            return;
        }
        printf("{\"violations\":[{\"fingerprint\":\"OneToken\",\"affected\":[");
        for (int n = 0; n < count; n++) printf("%s\"%s\"", n ? "," : "", ACTORS[holders[n]]);
        printf("]}]}");
        return;
    }
    const char *actor = get(question, "actor");
    int me = 0;
    while (me < MEMBERS - 1 && !is(actor, ACTORS[me])) me++;
    if (is(what, "start")) {
        printf("{\"state\":0,\"effects\":[%s]}", patience);
        return;
    }
    const char *state = get(question, "state"), *message = get(question, "message");
    int holds = state && *state == '1';
    if (is(message ? get(message, "type") : NULL, "Impatient") && holds) {
        printf("{\"state\":0,\"effects\":[{\"send\":{\"to\":\"%s\",\"message\":{\"type\":\"Token\"}}},%s]}",
               ACTORS[(me + 1) % MEMBERS], patience);
    } else {
        printf("{\"state\":1,\"effects\":[%s]}", patience);
    }
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        const char *id = get(line, "id");
        long number = id ? strtol(id, NULL, 10) : 0;
        const char *questions = get(line, "requests");
        if (!questions) {
            printf("{\"id\":%ld,\"hello\":{\"protocol\":\"demi-model/1\",\"actors\":[\"a\",\"b\",\"c\"],"
                   "\"bootstrap\":[{\"to\":\"a\",\"message\":{\"type\":\"Token\"}}]}}\n", number);
        } else {
            printf("{\"id\":%ld,\"answers\":[", number);
            for (const char *at = questions + 1; *at == '{'; ) {
                answer(at);
                at = end_of(at);
                if (*at == ',') {
                    putchar(',');
                    at++;
                }
            }
            printf("]}\n");
        }
        fflush(stdout);
    }
    free(line);
    return 0;
}
