/* regex_program.h - the compiled form of a pattern, between the compiler and the matcher. */
#pragma once

#include "kernels/io/regex.h"

/* One member of a class of characters. */
struct regex_item {
    enum {
        ITEM_RANGE,    /* low to high */
        ITEM_ASCII,    /* of the set `low` */
        ITEM_CATEGORY, /* of Unicode's general categories in the mask `low` */
        ITEM_SCRIPT    /* of the script `low` */
    } kind;
    bool negated;
    uint32_t low, high;
};

struct regex_class {
    struct regex_item *items;
    int count, capacity;
    bool negated;
    bool fold;  /* upper and lower case are the same */
    bool bytes; /* \C: any byte */
};

enum regex_assert {
    ASSERT_TEXT_BEGIN,
    ASSERT_TEXT_END,
    ASSERT_LINE_BEGIN,
    ASSERT_LINE_END,
    ASSERT_WORD_EDGE,
    ASSERT_NO_WORD_EDGE
};

struct regex_code {
    enum { CODE_CLASS, CODE_SPLIT, CODE_SAVE, CODE_ASSERT, CODE_MATCH } kind;
    int next;  /* but for MATCH */
    int other; /* SPLIT: the second choice; CLASS, SAVE, ASSERT: which */
};

struct kernel_regex {
    struct regex_code *codes;
    int count, capacity;
    struct regex_class *classes;
    int classes_count, classes_capacity;
    bool bytes; /* it has \C */
    int start;  /* the first code */
    int groups;
};

/* The form between pattern and program. */
struct regex_tree {
    enum {
        TREE_EMPTY,
        TREE_CLASS,
        TREE_ASSERT,
        TREE_CONCAT,
        TREE_EITHER,
        TREE_REPEAT,
        TREE_GROUP
    } kind;
    int which;    /* class, assertion, number of the group */
    int min, max; /* REPEAT; max -1: no end */
    bool lazy;
    int size;                  /* largest product of counts in it */
    struct regex_tree *first;  /* child */
    struct regex_tree *next;   /* brother */
    struct regex_tree *before; /* brother, of CONCAT's children */
};

struct arena;

/* The tree of a pattern; its classes are added to `regex`.  Fails with INVALID. */
struct regex_tree *kernel_regex_parse(struct kernel_regex *regex, struct arena *arena,
                                      const char *pattern, size_t size,
                                      struct error *err) CHECKED;

/* Sets of ASCII characters by name: "alpha", "digit" ..., "perl-space"; -1 if there is none. */
int kernel_regex_ascii_set(const char *name, size_t size);

/* Whether a character (-1: a byte that is none) is in the class. */
bool kernel_regex_in_class(const struct regex_class *set, int32_t character);

/* The character at `at` and its bytes; -1 with 1 byte where there is none. */
int32_t kernel_regex_character(const char *text, size_t size, size_t at, size_t *bytes);
