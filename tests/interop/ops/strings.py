"""strings.py - text: made, cut, matched, hashed, counted in Unicode."""

import unicodedata

import numpy as np
import tensorflow as tf

from .frame import ANY, Row

# Plain, with separators, spaces, capitals, several bytes a letter, and not UTF-8.
WORDS = (b"", b"a", b"abc", b"Hello", b" x ", b"a,b", b"b--c", b"1", b"42", b"-7.5e3", b"\t\n",
         "żółw".encode(), "ÄÖ".encode(), "日本".encode(), "𝄞".encode(), b"\xff", b"\xc3(", b"\0z",
         b"\xed\xa0\x80", b"\x0b", b"ABC abc", b"aaa", b"foo bar")
VALID = tuple(w for w in WORDS if w not in (b"\xff", b"\xc3(", b"\xed\xa0\x80"))
NUMBERS = (b"0", b"1", b"-1", b" 12 ", b"2147483647", b"2147483648", b"-2147483649", b"1e3",
           b"-1.5", b"nan", b"inf", b"-inf", b"1e-320", b"1e400", b"", b"x", b"0x10", b"1 2", b"+3",
           b"9223372036854775807", b"9223372036854775808", b"4294967295", b"18446744073709551615",
           b".5", b"5.", b"1_0", b"infinity", b"-nan", b"-0", b"\t7\n", b"3.4028236e38", b"1e")
PATTERNS = (b"a", b"a+", b"a*b?", b"[a-c]+", b"[^a]", b"(a)(b)?", b"^a", b"c$", b".", b"\\d+",
            b"\\w*", b"\\s", b"(?i)HELLO", b"(foo|bar)", b"a{2,3}", b"", b"\\bfoo\\b", b"x*",
            b"(?s).*", b"(?P<n>a)", b"[[:alpha:]]+", b"\\p{L}+", b"\\x41", b"(?:ab)+?", b".*?c",
            b"\\Aa", b"b\\z", b"[\\d,]+", b"a|", b"(", b"[z-a]", b"a**", b"\\", b"(?<x", b"\\C",
            "ż|日".encode(), b"\\pN", b"[^\\w]", b"(a|b)*c", b"a{0}", b"(?U)a+", b"(?m)^.$")
REWRITES = (b"", b"X", b"<\\0>", b"\\1", b"\\1\\0", b"\\\\", b"\\2", b"q", b"\\9", b"\\", b"a\\x")


def words(name="input", low=0, high=3, **attrs):
    return lambda s: {name: s.text(s.shape(low, high, 4), *WORDS),
                      **{k: v(s) for k, v in attrs.items()}}


def as_string(s):
    attrs = {"precision": s.pick(-1, -1, 0, 1, 3, 12), "width": s.pick(-1, -1, 0, 3, 9),
             "fill": s.pick("", "", "0", " ", "-", "+", "x0")}
    if s.rng.random() < 0.4:
        attrs[s.pick("scientific", "shortest")] = True
    return {"input": s.values(s.shape()), **attrs}


def regex(s, static, replace):
    pattern, attrs = s.pick(*PATTERNS), {}
    if replace:
        attrs["replace_global"] = s.flag()
    give = (lambda text: text) if static else s.string
    attrs["pattern"] = give(pattern)
    if replace:
        attrs["rewrite"] = give(s.pick(*REWRITES))
    return {"input": s.text(s.shape(0, 2, 4), *VALID), **attrs}


def string_format(s):
    count = s.int(0, 3)
    inputs = [s.values(s.shape(0, 3, 5), dtype=s.pick(*ANY.split())) for _ in range(count)]
    template = " ".join(["%s"] * count) + s.pick("", "!", "100%")
    if s.rng.random() < 0.1:
        template += "%s"
    return {"inputs": inputs, "template": template, "summarize": s.int(-1, 4)}


def join(s):
    shape = s.shape(0, 2, 3)
    return {"inputs": [s.text(shape if s.rng.random() < 0.7 else (), *WORDS)
                       for _ in range(s.int(1, 3))], "separator": s.pick("", ", ", "ż")}


def reduce_join(s):
    shape = s.shape(0, 3, 3)
    axes = s.rng.permutation(len(shape))[:s.int(0, len(shape))]
    axes = s.vector([a - len(shape) if s.flag() else a for a in axes])
    return {"inputs": s.text(shape, *WORDS), "reduction_indices": axes, "keep_dims": s.flag(),
            "separator": s.pick("", "-")}


def ngrams(s):
    counts = [s.int(0, 4) for _ in range(s.int(0, 4))]
    splits = s.vector(np.cumsum([0] + counts), s.index_type())
    if s.rng.random() < 0.1 and splits.size > 1:
        splits[s.int(0, splits.size - 1)] += s.pick(-1, 1)
    return {"data": s.text((sum(counts),), *WORDS), "data_splits": splits,
            "separator": s.pick("|", ""), "ngram_widths": [s.int(1, 4) for _ in range(s.int(0, 3))],
            "left_pad": s.pick("", "L"), "right_pad": s.pick("", "R"), "pad_width": s.int(-1, 3),
            "preserve_short_sequences": s.flag()}


def split(s):
    return {"input": s.text((s.int(0, 4),), *WORDS),
            "delimiter": s.text((), b" ", b",", b"", b"-b", b"a"), "skip_empty": s.flag()}


def split_v2(s):
    return {"input": s.text((s.int(0, 4),), *WORDS),
            "sep": s.text((), b" ", b",", b"", b"--", b"a"), "maxsplit": s.int(-1, 2)}


def substr(s):
    a, b = s.broadcast_pair()
    limit = (lambda low, high: s.ints(b, low, high, kind))
    kind = s.index_type()
    near = s.rng.random() < 0.7
    return {"input": s.text(np.broadcast_shapes(a, b) if near else a, *WORDS),
            "pos": limit(-2, 2) if near else limit(-9, 9), "len": limit(0, 3) if near else
            limit(-2, 9), "unit": s.pick("BYTE", "UTF8_CHAR")}


def unsorted_join(s):
    shape = s.shape(0, 3, 3)
    depth = s.int(0, len(shape))
    return {"inputs": s.text(shape, *WORDS), "segment_ids": s.ints(shape[:depth], -1, 3,
                                                                   s.index_type()),
            "num_segments": s.scalar(s.int(0, 4), s.index_type()), "separator": s.pick("", ",")}


ENCODINGS = ("UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII", "ISO-8859-1", "UTF-16LE", "latin1",
             "windows-1252", "no-such")


def encoded(s, encoding, shape):
    """Text in that encoding, or anything."""
    names = {"UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be", "UTF-16LE": "utf-16-le"}
    text = s.text(shape, *WORDS)
    if encoding in names and s.rng.random() < 0.8:
        text = np.array([t.decode(errors="replace").encode(names[encoding])
                         for t in text.reshape(-1)] + [None], object)[:-1].reshape(shape)
    return text


def unicode_attrs(s):
    return {"errors": s.pick("replace", "replace", "ignore", "strict"),
            "replacement_char": s.pick(65533, 32, 0x1F600, 0, -1, 0x110000),
            "replace_control_characters": s.flag()}


def decode(s):
    encoding = s.pick(*ENCODINGS)
    return {"input": encoded(s, encoding, s.shape(0, 2, 4)), "input_encoding": encoding,
            **unicode_attrs(s), "Tsplits": tf.as_dtype(s.index_type())}


def transcode(s):
    encoding = s.pick(*ENCODINGS)
    return {"input": encoded(s, encoding, s.shape(0, 2, 4)), "input_encoding": encoding,
            "output_encoding": s.pick("UTF-8", "UTF-16-BE", "UTF-32-BE"), **unicode_attrs(s)}


CODES = (0, 9, 65, 97, 0xE9, 0x3B1, 0x65E5, 0x1D11E, 0xD800, 0xFFFD, 0x10FFFF, 0x110000, -1, 0x5D0,
         0x627, 0x915, 0xAC00, 0x1F600, 0x301)


def encode(s):
    counts = [s.int(0, 3) for _ in range(s.int(0, 4))]
    splits = s.vector(np.cumsum([0] + counts), s.index_type())
    if s.rng.random() < 0.1 and splits.size > 1:
        splits[s.int(0, splits.size - 1)] += s.pick(-1, 1)
    return {"input_values": s.vector([s.pick(*CODES) for _ in range(sum(counts))]),
            "input_splits": splits, "output_encoding": s.pick("UTF-8", "UTF-16-BE", "UTF-32-BE"),
            "errors": s.pick("replace", "ignore", "strict"),
            "replacement_char": s.pick(65533, 32, 0x1F600)}


def base64(s):
    return {"input": s.text(s.shape(0, 2, 4), b"", b"YQ", b"YQ==", b"YWI", b"-_-_", b"YWJj", b"A",
                            b"****", b"YQ=", b"aGVsbG8", b"+/+/", b"Zg==Zg", b"YR", b"A===")}


def old_letter(s):
    """A code point that Unicode has had for long: TensorFlow's tables are of version 13, where
    later ones are of no script."""
    while True:
        code = s.int(0, 0x3000)
        if unicodedata.ucd_3_2_0.category(chr(code)) != "Cn":
            return code


def script(s):
    shape = s.shape(0, 2, 5)
    codes = [s.pick(*CODES) if s.flag() else old_letter(s) for _ in range(int(np.prod(shape)))]
    return {"input": s.vector(codes).reshape(shape)}


def number(s):
    # Mostly what can be read: one word that cannot fails the whole.
    good = NUMBERS[:4]
    return {"string_tensor": s.text((), *NUMBERS) if s.flag() else
            np.array([s.pick(*good) for _ in range(s.int(0, 4))] + [None], object)[:-1],
            "out_type": s.type}


ROWS = [
    Row("AsString", ANY, as_string),
    Row("StringToNumber", "float32 float64 int32 int64 uint32 uint64", number),
    Row("StringFormat", "string", string_format),
    Row("StringJoin", "string", join),
    Row("ReduceJoin", "string", reduce_join),
    Row("UnsortedSegmentJoin", "string", unsorted_join),
    Row("StringLength", "string", words(unit=lambda s: s.pick("BYTE", "UTF8_CHAR"))),
    Row("StringLower", "string", words(encoding=lambda s: s.pick("", "utf-8", "x"))),
    Row("StringUpper", "string", words(encoding=lambda s: s.pick("", "utf-8", "x"))),
    Row("StringStrip", "string", words()),
    Row("StringNGrams", "string", ngrams),
    Row("StringSplit", "string", split),
    Row("StringSplitV2", "string", split_v2),
    Row("Substr", "string", substr),
    Row("RegexFullMatch", "string", lambda s: regex(s, False, False)),
    Row("StaticRegexFullMatch", "string", lambda s: regex(s, True, False)),
    Row("RegexReplace", "string", lambda s: regex(s, False, True)),
    Row("StaticRegexReplace", "string", lambda s: regex(s, True, True)),
    Row("StringToHashBucket", "string", words("string_tensor", num_buckets=lambda s: s.int(1, 1000))),
    Row("StringToHashBucketFast", "string", words(num_buckets=lambda s: s.pick(1, 7, 2**40))),
    Row("StringToHashBucketStrong", "string",
        words(num_buckets=lambda s: s.int(1, 99),
              key=lambda s: s.pick([1, 2], [-5, 2**40], [1], [0, 0]))),
    Row("EncodeBase64", "string", words(pad=lambda s: s.flag())),
    Row("DecodeBase64", "string", base64),
    Row("UnicodeDecode", "string", decode),
    Row("UnicodeDecodeWithOffsets", "string", decode),
    Row("UnicodeTranscode", "string", transcode),
    Row("UnicodeEncode", "string", encode),
    Row("UnicodeScript", "int32", script),
    Row("ShardedFilename", "string", lambda s: {
        "basename": s.text((), b"/a/b", b""), "shard": s.scalar(s.pick(0, 7, 123456, -1)),
        "num_shards": s.scalar(s.pick(1, 10, 100000, -1))}),
]
