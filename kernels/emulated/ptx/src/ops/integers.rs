//! Integers and bits.

use super::{Compute, Int, four, one, three, two};

pub(super) fn compute(form: &str) -> Option<Compute> {
    if let Some(mode) = form.strip_prefix("prmt.b32") {
        return permute(mode);
    }
    if let Some(found) = dot(form).or_else(|| funnel(form)) {
        return Some(found);
    }
    let (op, name) = form.rsplit_once('.')?;
    let int = Int::named(name)?;
    match name.as_bytes()[0] {
        b'b' => bits(op, int),
        _ if int.bits == 8 => None,
        _ => numbers(op, int),
    }
}

/// Instructions that do not care for the sign.
fn bits(op: &str, int: Int) -> Option<Compute> {
    let n = int.bits;
    if n == 8 {
        return None;
    }
    Some(match op {
        "mov" => one(move |a| int.cut(a)),
        "and" => two(move |a, b| int.cut(a & b)),
        "or" => two(move |a, b| int.cut(a | b)),
        "xor" => two(move |a, b| int.cut(a ^ b)),
        "not" => one(move |a| int.cut(!a)),
        "cnot" => one(move |a| u64::from(int.cut(a) == 0)),
        "shl" => two(move |a, by| if by as u32 >= n { 0 } else { int.cut(a << by as u32) }),
        "shr" => shift_right(int),
        "popc" if n > 16 => one(move |a| int.cut(a).count_ones().into()),
        "clz" if n > 16 => one(move |a| (int.cut(a).leading_zeros() - (64 - n)).into()),
        "brev" if n > 16 => one(move |a| int.cut(a).reverse_bits() >> (64 - n)),
        "bfi" if n > 16 => four(move |from, into, at, len| insert_field(int, from, into, at, len)),
        "lop3" if n == 32 => four(|a, b, c, table| {
            (0..8).fold(0, |out, row| {
                let pick = |v: u64, bit: u64| if row >> bit & 1 == 1 { v } else { !v };
                if table >> row & 1 == 1 { out | pick(a, 2) & pick(b, 1) & pick(c, 0) } else { out }
            }) & 0xffff_ffff
        }),
        _ => return None,
    })
}

fn numbers(op: &str, int: Int) -> Option<Compute> {
    let n = int.bits;
    let wide = Int { bits: 2 * n.min(32), signed: int.signed };
    Some(match op {
        "mov" => one(move |a| int.cut(a)),
        "add" => two(move |a, b| int.cut(a.wrapping_add(b))),
        "sub" => two(move |a, b| int.cut(a.wrapping_sub(b))),
        "add.sat" if n == 32 && int.signed => two(move |a, b| int.saturate(int.value(a) + int.value(b))),
        "sub.sat" if n == 32 && int.signed => two(move |a, b| int.saturate(int.value(a) - int.value(b))),
        "mul.lo" => two(move |a, b| int.cut(a.wrapping_mul(b))),
        "mad.lo" => three(move |a, b, c| int.cut(a.wrapping_mul(b).wrapping_add(c))),
        "mul.hi" if n == 64 && !int.signed => two(|a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        "mul.hi" => two(move |a, b| int.cut(high(int, a, b))),
        "mad.hi" => three(move |a, b, c| int.cut(high(int, a, b).wrapping_add(c))),
        "mul.wide" if n < 64 => two(move |a, b| wide.cut(product(int, a, b))),
        "mad.wide" if n < 64 => three(move |a, b, c| wide.cut(product(int, a, b).wrapping_add(c))),
        // A card's quotients and remainders by 0 have all bits set.
        "div" if int.signed => two(move |a, b| match int.cut(b) {
            0 => int.cut(u64::MAX),
            _ => int.cut(int.sign_extended(a).wrapping_div(int.sign_extended(b)) as u64),
        }),
        "rem" if int.signed => two(move |a, b| match int.cut(b) {
            0 => int.cut(u64::MAX),
            _ => int.cut(int.sign_extended(a).wrapping_rem(int.sign_extended(b)) as u64),
        }),
        "div" => two(move |a, b| int.cut(a).checked_div(int.cut(b)).unwrap_or(int.cut(u64::MAX))),
        "rem" => two(move |a, b| int.cut(a).checked_rem(int.cut(b)).unwrap_or(int.cut(u64::MAX))),
        "min" if int.signed => two(move |a, b| int.cut(int.sign_extended(a).min(int.sign_extended(b)) as u64)),
        "max" if int.signed => two(move |a, b| int.cut(int.sign_extended(a).max(int.sign_extended(b)) as u64)),
        "min" => two(move |a, b| int.cut(a).min(int.cut(b))),
        "max" => two(move |a, b| int.cut(a).max(int.cut(b))),
        "neg" if int.signed => one(move |a| int.cut(a.wrapping_neg())),
        "abs" if int.signed => one(move |a| int.cut(int.sign_extended(a).unsigned_abs())),
        "sad" => three(move |a, b, c| int.cut(((int.value(a) - int.value(b)).unsigned_abs() as u64).wrapping_add(c))),
        "shr" => shift_right(int),
        "bfind" if n > 16 => one(move |a| leading(int, a).map_or(0xffff_ffff, u64::from)),
        "bfind.shiftamt" if n > 16 => one(move |a| leading(int, a).map_or(0xffff_ffff, |at| u64::from(n - 1 - at))),
        "bfe" if n > 16 => three(move |a, at, len| field(int, a, at, len)),
        _ => return None,
    })
}

fn product(int: Int, a: u64, b: u64) -> u64 {
    (int.value(a) * int.value(b)) as u64
}

fn high(int: Int, a: u64, b: u64) -> u64 {
    if int.bits == 64 && !int.signed {
        return ((u128::from(a) * u128::from(b)) >> 64) as u64;
    }
    ((int.value(a) * int.value(b)) >> int.bits) as u64
}

fn shift_right(int: Int) -> Compute {
    let n = int.bits;
    if int.signed {
        two(move |a, by| int.cut((int.sign_extended(a) >> (by as u32).min(n - 1)) as u64))
    } else {
        two(move |a, by| if by as u32 >= n { 0 } else { int.cut(a) >> by as u32 })
    }
}

/// The highest bit that differs from the sign.
fn leading(int: Int, a: u64) -> Option<u32> {
    let v = int.cut(if int.signed && int.sign_extended(a) < 0 { !a } else { a });
    v.checked_ilog2()
}

/// Position and length of a field: of 32 bits, the lowest eight of each count; of 64 bits, all do.
fn place(int: Int, at: u64, len: u64) -> (u32, u32) {
    let cut = if int.bits == 32 { 255 } else { u32::MAX };
    ((at as u32 & cut).min(64), (len as u32 & cut).min(64))
}

fn field(int: Int, a: u64, at: u64, len: u64) -> u64 {
    let ((at, len), n) = (place(int, at, len), int.bits);
    let sign = int.signed && len > 0 && int.cut(a) >> (at + len - 1).min(n - 1) & 1 == 1;
    let above = if len >= 64 { 0 } else { u64::MAX << len };
    // Bits past the end of the number are copies of its sign.
    let moved = if at >= n { 0 } else { int.cut(a) >> at };
    let known = n.saturating_sub(at);
    let filled = if sign && known < 64 { moved | u64::MAX << known } else { moved };
    int.cut(filled & !above | if sign { above } else { 0 })
}

fn insert_field(int: Int, from: u64, into: u64, at: u64, len: u64) -> u64 {
    let (at, len) = place(int, at, len);
    let ones = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    let mask = ones.checked_shl(at).unwrap_or(0);
    int.cut(into & !mask | from.checked_shl(at).unwrap_or(0) & mask)
}

/// `shf`: 32 bits of the pair (high, low).
fn funnel(form: &str) -> Option<Compute> {
    let pair = |low: u64, high: u64| high << 32 | low & 0xffff_ffff;
    Some(match form {
        "shf.l.wrap.b32" => three(move |low, high, by| (pair(low, high) << (by & 31)) >> 32),
        "shf.l.clamp.b32" => three(move |low, high, by| match by as u32 {
            0..32 => (pair(low, high) << by as u32) >> 32,
            _ => low & 0xffff_ffff,
        }),
        "shf.r.wrap.b32" => three(move |low, high, by| (pair(low, high) >> (by & 31)) & 0xffff_ffff),
        "shf.r.clamp.b32" => three(move |low, high, by| pair(low, high) >> (by as u32).min(32) & 0xffff_ffff),
        _ => return None,
    })
}

/// `prmt`: bytes of the pair (b, a) by four selectors, or by a mode and the two lowest bits of c.
fn permute(mode: &str) -> Option<Compute> {
    let by_mode = |bytes: fn(u64) -> [u64; 4]| {
        three(move |a, b, c| {
            let of_pair = bytes(c & 3);
            (0..4).fold(0, |out, i| out | byte_of(a, b, of_pair[i]) << (8 * i))
        })
    };
    Some(match mode {
        "" => three(|a, b, c| {
            (0..4).fold(0, |out, i| {
                let selector = c >> (4 * i) & 15;
                let byte = byte_of(a, b, selector & 7);
                let byte = if selector < 8 { byte } else { 255 * (byte >> 7) };
                out | byte << (8 * i)
            })
        }),
        ".f4e" => by_mode(|c| [c, c + 1, c + 2, c + 3]),
        ".b4e" => by_mode(|c| [c, (c + 7) & 7, (c + 6) & 7, (c + 5) & 7]),
        ".rc8" => by_mode(|c| [c; 4]),
        ".ecl" => by_mode(|c| [c, c.max(1), c.max(2), 3]),
        ".ecr" => by_mode(|c| [0, c.min(1), c.min(2), c]),
        ".rc16" => by_mode(|c| [2 * (c & 1), 2 * (c & 1) + 1, 2 * (c & 1), 2 * (c & 1) + 1]),
        _ => return None,
    })
}

fn byte_of(a: u64, b: u64, at: u64) -> u64 {
    if at < 4 { a >> (8 * at) & 255 } else { b >> (8 * (at - 4)) & 255 }
}

/// `dp4a` and `dp2a`: products of the bytes of b with the bytes, or the low or high half words, of a.
fn dot(form: &str) -> Option<Compute> {
    let mut parts = form.split('.');
    let op = parts.next()?;
    let (n, bits, first) = match op {
        "dp4a" => (4, 8, 0),
        "dp2a" => match parts.next()? {
            "lo" => (2, 16, 0),
            "hi" => (2, 16, 2),
            _ => return None,
        },
        _ => return None,
    };
    let sign = |name: &str| Some(matches!(name, "s32")).filter(|_| matches!(name, "s32" | "u32"));
    let of_a = Int { bits, signed: sign(parts.next()?)? };
    let of_b = Int { bits: 8, signed: sign(parts.next()?)? };
    if parts.next().is_some() {
        return None;
    }
    Some(three(move |a, b, c| {
        let sum = (0..n).map(|i| of_a.value(a >> (bits * i)) * of_b.value(b >> (8 * (i + first)))).sum::<i128>();
        (sum as u64).wrapping_add(c) & 0xffff_ffff
    }))
}
