"""XXH3 (64 bits, no seed, default secret), as models hash their arrays. Standard library and numpy."""

import numpy as np

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
MASK = (1 << 64) - 1


def _u32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def _u64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def _fold(a, b):
    product = a * b
    return (product & MASK) ^ (product >> 64)


def _avalanche(h):
    h = (h ^ (h >> 37)) * PRIME_MX1 & MASK
    return h ^ (h >> 32)


def _avalanche64(h):
    h = (h ^ (h >> 33)) * P64_2 & MASK
    h = (h ^ (h >> 29)) * P64_3 & MASK
    return h ^ (h >> 32)


def _mix16(data, at, secret_at):
    return _fold(_u64(data, at) ^ _u64(SECRET, secret_at), _u64(data, at + 8) ^ _u64(SECRET, secret_at + 8))


def _short(data):
    n = len(data)
    if n > 8:
        low_flip = _u64(SECRET, 24) ^ _u64(SECRET, 32)
        high_flip = _u64(SECRET, 40) ^ _u64(SECRET, 48)
        low, high = _u64(data, 0) ^ low_flip, _u64(data, n - 8) ^ high_flip
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((n + swapped + high + _fold(low, high)) & MASK)
    if n >= 4:
        flip = _u64(SECRET, 8) ^ _u64(SECRET, 16)
        h = (_u32(data, n - 4) + (_u32(data, 0) << 32)) ^ flip
        rotate = lambda x, by: (x << by | x >> (64 - by)) & MASK
        h ^= rotate(h, 49) ^ rotate(h, 24)
        h = h * PRIME_MX2 & MASK
        h ^= (h >> 35) + n
        h = h * PRIME_MX2 & MASK
        return h ^ (h >> 28)
    if n:
        combined = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return _avalanche64(combined ^ (_u32(SECRET, 0) ^ _u32(SECRET, 4)))
    return _avalanche64(_u64(SECRET, 56) ^ _u64(SECRET, 64))


def _middle(data):
    n = len(data)
    h = n * P64_1 & MASK
    if n <= 128:
        for i in reversed(range((n - 1) // 32 + 1)):
            h += _mix16(data, 16 * i, 32 * i) + _mix16(data, n - 16 * (i + 1), 32 * i + 16)
        return _avalanche(h & MASK)
    for i in range(8):
        h += _mix16(data, 16 * i, 16 * i)
    h = _avalanche(h & MASK)
    for i in range(8, n // 16):
        h += _mix16(data, 16 * i, 16 * (i - 8) + 3)
    h += _mix16(data, n - 16, 136 - 17)
    return _avalanche(h & MASK)


def _accumulate(acc, stripes, keys):
    """Adds stripes (n x 8 lanes) with their keys to the accumulators."""
    mixed = stripes ^ keys
    products = (mixed & np.uint64(0xFFFFFFFF)) * (mixed >> np.uint64(32))
    swapped = stripes.reshape(len(stripes), 4, 2)[:, :, ::-1].reshape(len(stripes), 8)
    acc += products.sum(axis=0, dtype=np.uint64) + swapped.sum(axis=0, dtype=np.uint64)


def _long(data):
    lanes = lambda at: np.frombuffer(SECRET[at:at + 64], dtype="<u8")
    per_block = (len(SECRET) - 64) // 8
    keys = np.stack([lanes(8 * i) for i in range(per_block)])
    acc = np.array([P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1], dtype=np.uint64)
    n_stripes = (len(data) - 1) // 64
    stripes = np.frombuffer(data[:n_stripes * 64], dtype="<u8").reshape(n_stripes, 8)
    n_blocks = (len(data) - 1) // (per_block * 64)
    last_key = lanes(len(SECRET) - 64)
    with np.errstate(over="ignore"):
        for block in range(n_blocks):
            _accumulate(acc, stripes[block * per_block:(block + 1) * per_block], keys)
            acc ^= acc >> np.uint64(47)
            acc ^= last_key
            acc *= np.uint64(P32_1)
        rest = stripes[n_blocks * per_block:]
        _accumulate(acc, rest, keys[:len(rest)])
        last = np.frombuffer(data[len(data) - 64:], dtype="<u8").reshape(1, 8)
        _accumulate(acc, last, lanes(len(SECRET) - 64 - 7).reshape(1, 8))
    a = [int(x) for x in acc]
    h = len(data) * P64_1 & MASK
    for i in range(4):
        h += _fold(a[2 * i] ^ _u64(SECRET, 11 + 16 * i), a[2 * i + 1] ^ _u64(SECRET, 19 + 16 * i))
    return _avalanche(h & MASK)


def xxh3_64(data):
    """The hash of bytes, as a number."""
    if len(data) <= 16:
        return _short(data)
    return _middle(data) if len(data) <= 240 else _long(bytes(data))


def hex16(data):
    """The hash as it stands in config.json."""
    return f"{xxh3_64(data):016x}"
