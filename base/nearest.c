/* nearest.c - distances between names. */

#include <ctype.h>

#include "base/nearest.h"

#define LETTERS 40 /* names are cut there */

/* Letters to add, drop, change or swap to make b of a; case aside. */
static int distance(const char *a, const char *b)
{
    int rows[3][LETTERS + 1];
    int a_count = (int)strnlen(a, LETTERS);
    int b_count = (int)strnlen(b, LETTERS);
    for (int j = 0; j <= b_count; j++)
        rows[0][j] = j;
    for (int i = 1; i <= a_count; i++) {
        int *now = rows[i % 3];
        const int *before = rows[(i + 2) % 3];
        const int *two_before = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= b_count; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            int best = before[j - 1] + (x != y);
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            bool swapped = i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                           y == tolower((unsigned char)a[i - 2]);
            if (swapped && two_before[j - 2] + 1 < best)
                best = two_before[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[a_count % 3][b_count];
}

const char *nearest_name(const char *found, const char *const *names)
{
    const char *nearest = NULL;
    int best = (int)strnlen(found, LETTERS) / 3 + 1;
    for (int i = 0; names[i]; i++) {
        int d = distance(found, names[i]);
        if (d <= best && (d < best || !nearest)) {
            nearest = names[i];
            best = d;
        }
    }
    return nearest;
}
