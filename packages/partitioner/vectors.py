"""Writes vectors.json, from an implementation of its own, so that the vectors do not merely repeat
what the TypeScript code does. Run: python3 vectors.py > vectors.json

Hashes: murmur3 x86_32 (seed 0), murmur2 as Kafka's partitioner uses it (seed 0x9747b28c, sign bit
masked), both over the key's UTF-8; 32-bit FNV-1a over the token's UTF-8.
"""

import json

LANES = [1, 12, 64, 4096]
M32 = 0xFFFFFFFF

KEYS = [
    "a", "foo", "baz", "qux", "hello", "21", "foobar", "abc", "customer-42", "order-1", "order-19",
    "0", "-1", "null", "true", "[object Object]", "A", "Z", "z", "~", "!", "$", "$JS", "_INBOX", "g2",
    "550e8400-e29b-41d4-a716-446655440000", "user@example.com", "tenant/7:device#3",
    "a b", " ", " leading", "trailing ", "Case 4580", "a.b", ".", "..", "a..b", "*", ">", "a*b", "a>b",
    "%", "%%", "%2E", "%41", "100%", "a%20b", "tab\there", "line\nfeed", "x\r\nPUB y 0", "nul\0byte",
    "\x01", "\x1f", "\x7f", "\x80", "\u00a0", "\u00e9", "e\u0301", "caf\u00e9", "l\u00f8p",
    "\u65e5\u672c", "\u6771\u4eac\u90fd", "\u041c\u043e\u0441\u043a\u0432\u0430", "\u03b1\u03b2\u03b3",
    "\u0639\u0631\u0628", "\u05e2\u05d1\u05e8", "\ud55c\uad6d", "\u1112\u1161\u11ab", "\U0001f600",
    "\U0001f469\u200d\U0001f4bb", "\U0001f1f3\U0001f1f4", "\U00010348", "\U0010ffff", "\ufeff", "\ufffd",
    "\u200b", "\u2028", "\u2029", "\u0130", "\u00df", "\ufb01", "\x7fe", "x" * 3, "x" * 4, "x" * 5,
    "x" * 511, "x" * 512, "\u00e9" * 256, "\u65e5" * 170, "\U0001f600" * 128, "." * 170, "\0" * 170,
]

TYPES = ["created", "address.changed", "a.b.c.d", "order placed", "100%", "ge\u00e4ndert", "\u4f5c\u6210", "a*b", "a>b.c"]

# Each stands for no key: another spelling of one, or no spelling at all.
NOT_KEY_TOKENS = [
    "", "%41", "%61", "%2e", "%2a", "%3e", "%7f", "%0a", "%0D%0a", "%", "%2", "%G1", "%%", "a%", "a%2", "100%",
    "%C3%A9", "%C3", "%FF", "%80", "%21", "%7E", "%2D", "a b", "a.b", "*", ">", "\t", "\x7f", "\0", "a%2eb",
    "x" * 513, "\u00e9" * 257, "%2E" * 171,
]


def encode(text):
    return "".join(
        "%%%02X" % ord(c) if ord(c) <= 0x20 or ord(c) == 0x7F or c in ".*>%" else c for c in text
    )


def fnv1a(data):
    h = 2166136261
    for byte in data:
        h = (h ^ byte) * 16777619 & M32
    return h


def rotl(x, n):
    return (x << n | x >> (32 - n)) & M32


def murmur3(data, seed=0):
    h = seed
    full = len(data) // 4 * 4
    for i in range(0, full, 4):
        k = int.from_bytes(data[i : i + 4], "little") * 0xCC9E2D51 & M32
        h ^= rotl(k, 15) * 0x1B873593 & M32
        h = (rotl(h, 13) * 5 + 0xE6546B64) & M32
    if len(data) > full:
        k = int.from_bytes(data[full:], "little") * 0xCC9E2D51 & M32
        h ^= rotl(k, 15) * 0x1B873593 & M32
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & M32
    h = (h ^ h >> 13) * 0xC2B2AE35 & M32
    return h ^ h >> 16


def murmur2(data, seed=0x9747B28C):
    m = 0x5BD1E995
    h = seed ^ len(data)
    full = len(data) // 4 * 4
    for i in range(0, full, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & M32
        k = (k ^ k >> 24) * m & M32
        h = h * m & M32 ^ k
    if len(data) > full:
        h = (h ^ int.from_bytes(data[full:], "little")) * m & M32
    h = (h ^ h >> 13) * m & M32
    return (h ^ h >> 15) & 0x7FFFFFFF


def vector(key):
    token = encode(key)
    raw = key.encode()
    hashes = {"murmur3": murmur3(raw), "murmur2": murmur2(raw), "fnv1a": fnv1a(token.encode())}
    return {
        "key": key,
        "token": token,
        "hashes": hashes,
        "lanes": {name: [h % n for n in LANES] for name, h in hashes.items()},
    }


def main():
    lines = [
        '{',
        '"about": "Lanekeeper partitioner vectors, version 1. lanes[hash][i] = hashes[hash] mod laneCounts[i]. '
        'murmur2 is given with the sign bit masked. notKeyTokens must be refused.",',
        '"laneCounts": %s,' % json.dumps(LANES),
        '"keys": [',
        ",\n".join(json.dumps(vector(key)) for key in KEYS),
        '],',
        '"types": [',
        ",\n".join(
            json.dumps({"type": t, "encoded": ".".join(encode(part) for part in t.split("."))}) for t in TYPES
        ),
        '],',
        '"notKeyTokens": [',
        ",\n".join(json.dumps(token) for token in NOT_KEY_TOKENS),
        ']',
        '}',
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
