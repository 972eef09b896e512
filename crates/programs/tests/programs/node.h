/* What nodes in C read of a line. */
#include <string.h>

/* The text or number behind a name, of at most 60 bytes. */
static void text_of(const char *line, const char *name, char *out) {
    const char *at = strstr(line, name);
    out[0] = 0;
    if (!at) return;
    at += strlen(name);
    int i = 0;
    while (*at && *at != '"' && *at != ',' && *at != '}' && i < 60) out[i++] = *at++;
    out[i] = 0;
}
