//! Forms that no card was asked about, and whole families, against their definitions in plain Rust.

use crate::{Random, run, run_by, text};

/// Runs an instruction on 1,024 threads of edges and of any bits. Results are in %x9, %r9, %h9, %fd9 or %f9.
#[track_caller]
fn assert_form(instruction: &str, expected: impl Fn([u64; 4]) -> u64) {
    assert_form_of("sm_90", instruction, &mut Random(1), Random::edge, expected);
}

#[track_caller]
fn assert_form_of(
    target: &str,
    instruction: &str,
    random: &mut Random,
    operand: impl Fn(&mut Random) -> u64,
    expected: impl Fn([u64; 4]) -> u64,
) {
    let n = 1024;
    let operands: Vec<u64> = (0..4 * n).map(|_| operand(random)).collect();
    let takes = instruction.split([' ', ',']).nth(1).unwrap();
    let store = match takes {
        "%x9" => "",
        "%r9" => "cvt.u64.u32 %x9, %r9;",
        "%h9" => "cvt.u64.u16 %x9, %h9;",
        "%p0" | "%p0|%p7" | "%p7|%p0" => "selp.b64 %x9, 1, 0, %p0;",
        "%fd9" => "mov.b64 %x9, %fd9;",
        _ => "mov.b32 %r9, %f9; cvt.u64.u32 %x9, %r9;",
    };
    let moves: String = (0..4)
        .map(|i| {
            format!(
                "cvt.u16.u64 %h{i}, %x{i}; mov.b32 %f{i}, %r{i}; mov.b64 %fd{i}, %x{i}; setp.lt.s32 %p{}, %r{i}, 0;",
                i + 1
            )
        })
        .collect();
    let body = format!("{moves} {instruction}; {store} st.global.u64 [%x14], %x9;");
    let out = run(&text(target, "8.0", 1, &body), &operands, 1).unwrap();
    for i in 0..n {
        let of = [0, 1, 2, 3].map(|k| operands[k * n + i]);
        assert_eq!(out[i], expected(of), "{instruction} of {of:#x?}");
    }
}

const LOW: u64 = 0xffff_ffff;

#[test]
fn moves() {
    assert_form("mov.b64 %x9, %x0", |[a, ..]| a);
    assert_form("mov.u64 %x9, -3", |_| -3i64 as u64);
    assert_form("mov.s32 %r9, %r0", |[a, ..]| a & LOW);
    assert_form("mov.u16 %h9, %h0", |[a, ..]| a & 0xffff);
    assert_form("mov.f64 %fd9, 0dBFF8000000000000", |_| (-1.5f64).to_bits());
    assert_form("mov.f32 %f9, 0f40490FDB", |_| std::f32::consts::PI.to_bits().into());
    assert_form("mov.pred %p0, %p1", |[a, ..]| u64::from((a as i32) < 0));
    assert_form("not.pred %p0, %p1", |[a, ..]| u64::from((a as i32) >= 0));
    assert_form("xor.pred %p0, %p1, %p2", |[a, b, ..]| u64::from(((a ^ b) as i32) < 0));
    assert_form("and.pred %p0, %p1, !%p2", |[a, b, ..]| u64::from((a as i32) < 0 && (b as i32) >= 0));
    assert_form("or.pred %p0, %p1, %p2", |[a, b, ..]| u64::from(((a | b) as i32) < 0));
    assert_form("selp.s64 %x9, %x0, %x1, !%p3", |[a, b, c, _]| if (c as i32) < 0 { b } else { a });
    assert_form("selp.u16 %h9, %h0, -1, %p3", |[a, _, c, _]| if (c as i32) < 0 { a & 0xffff } else { 0xffff });
}

#[test]
fn integers() {
    assert_form("add.u64 %x9, %x0, 0xffffffffffffffff", |[a, ..]| a.wrapping_sub(1));
    assert_form("mad.lo.s64 %x9, %x0, %x1, %x2", |[a, b, c, _]| a.wrapping_mul(b).wrapping_add(c));
    assert_form("mul.wide.s32 %x9, %r0, -7", |[a, ..]| (i64::from(a as i32) * -7) as u64);
    assert_form("mul.hi.s64 %x9, %x0, %x1", |[a, b, ..]| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64);
    assert_form("sad.u64 %x9, %x0, %x1, %x2", |[a, b, c, _]| a.abs_diff(b).wrapping_add(c));
    assert_form("sad.s16 %h9, %h0, %h1, %h2", |[a, b, c, _]| {
        u64::from((a as i16).abs_diff(b as i16).wrapping_add(c as u16))
    });
    assert_form("rem.s64 %x9, %x0, 10", |[a, ..]| (a as i64 % 10) as u64);
    assert_form("div.s32 %r9, %r0, -1", |[a, ..]| (a as i32).wrapping_neg() as u32 as u64);
    assert_form("shr.b16 %h9, %h0, 3", |[a, ..]| (a & 0xffff) >> 3);
    assert_form("shr.s16 %h9, %h0, %r1", |[a, b, ..]| u64::from((i32::from(a as i16) >> (b as u32).min(31)) as u16));
    assert_form("bfind.shiftamt.s64 %r9, %x0", |[a, ..]| {
        let v = if (a as i64) < 0 { !a } else { a };
        if v == 0 { LOW } else { u64::from(v.leading_zeros()) }
    });
    assert_form("lop3.b32 %r9, %r0, %r1, %r2, 0xCA", |[a, b, c, _]| ((a & b) | (!a & c)) & LOW);
    assert_form("dp2a.hi.s32.u32 %r9, %r0, %r1, %r2", |[a, b, c, _]| {
        let half = |i: u32| i64::from((a >> (16 * i)) as i16);
        let byte = |i: u32| i64::from((b >> (8 * i)) as u8);
        (half(0) * byte(2) + half(1) * byte(3) + (c & LOW) as i64) as u64 & LOW
    });
    assert_form("dp4a.u32.s32 %r9, %r0, %r1, %r2", |[a, b, c, _]| {
        let sum: i64 = (0..4).map(|i| i64::from((a >> (8 * i)) as u8) * i64::from((b >> (8 * i)) as i8)).sum();
        (sum + (c & LOW) as i64) as u64 & LOW
    });
}

#[test]
fn comparisons() {
    assert_form("setp.lo.u32 %p0, %r0, %r1", |[a, b, ..]| u64::from((a as u32) < b as u32));
    assert_form("setp.ls.u64 %p0, %x0, %x1", |[a, b, ..]| u64::from(a <= b));
    assert_form("setp.hi.u16 %p0, %h0, %h1", |[a, b, ..]| u64::from(a as u16 > b as u16));
    assert_form("setp.hs.u64 %p0, %x0, 100", |[a, ..]| u64::from(a >= 100));
    assert_form("setp.eq.b64 %p0, %x0, %x1", |[a, b, ..]| u64::from(a == b));
    assert_form("setp.ne.b16 %p0, %h0, 0", |[a, ..]| u64::from(a as u16 != 0));
    assert_form("setp.lt.or.s64 %p0, %x0, %x1, %p3", |[a, b, c, _]| u64::from((a as i64) < b as i64 || (c as i32) < 0));
    assert_form("setp.gt.and.u32 %p0|%p7, %r0, %r1, !%p3", |[a, b, c, _]| {
        u64::from(a as u32 > b as u32 && (c as i32) >= 0)
    });
    assert_form("setp.gt.xor.u32 %p7|%p0, %r0, %r1, %p3", |[a, b, c, _]| {
        u64::from((a as u32 <= b as u32) ^ ((c as i32) < 0))
    });
}

#[test]
fn conversions_between_integers() {
    macro_rules! pair {
        ($($to:ident, $register:literal, $mask:expr, $from:ident, $source:literal);* $(;)?) => {$(
            let name = |s: bool| format!("cvt.{}{}.{} {}, {}", if s { "sat." } else { "" }, stringify!($to), stringify!($from), $register, $source).replace(".i", ".s");
            assert_form(&name(false), |[a, ..]| a as $from as $to as u64 & $mask);
            assert_form(&name(true), |[a, ..]| (a as $from as i128).clamp($to::MIN as i128, $to::MAX as i128) as u64 & $mask);
        )*};
    }
    // Signed results fill the register.
    pair! {
        i8, "%r9", LOW, i64, "%x0"; u8, "%r9", LOW, i64, "%x0"; u8, "%h9", 0xffff, u16, "%h0"; i8, "%h9", 0xffff, i16, "%h0";
        u16, "%r9", LOW, u64, "%x0"; i16, "%x9", u64::MAX, i32, "%r0"; u32, "%x9", u64::MAX, i64, "%x0"; i32, "%x9", u64::MAX, u32, "%r0";
        i64, "%x9", u64::MAX, i16, "%h0"; u64, "%x9", u64::MAX, i32, "%r0"; i64, "%x9", u64::MAX, u64, "%x0"; u64, "%x9", u64::MAX, i64, "%x0";
    }
}

#[test]
fn floats_rounded_up_and_down() {
    // A directed reciprocal is the nearest one or its neighbour: its product with the number is at most, or least, 1.
    let finite = |r: &mut Random| u64::from((r.next() as u32 & 0x807f_ffff) | (0x30 + (r.next() as u32 & 0x1f)) << 23);
    for (direction, is_up) in [("rm", false), ("rp", true)] {
        let operands = &mut Random(7);
        assert_form_of("sm_80", &format!("rcp.{direction}.f32 %f9, %f0"), operands, finite, |[a, ..]| {
            let x = f64::from(f32::from_bits(a as u32));
            let near = (1.0 / x) as f32;
            // 48 bits at most: the product is exact.
            let exact = f64::from(near) * x;
            let above = (exact > 1.0) == (x > 0.0) && exact != 1.0;
            let out = match (is_up, above) {
                _ if exact == 1.0 => near,
                (true, false) => near.next_up(),
                (false, true) => near.next_down(),
                _ => near,
            };
            out.to_bits().into()
        });
    }
    assert_form("add.f64 %fd9, %fd0, 0d0000000000000000", |[a, ..]| {
        let x = f64::from_bits(a);
        if x.is_nan() { a | 1 << 51 } else { (x + 0.0).to_bits() }
    });
}

/// A small whole number in a format with so many stored bits of the significand and this bias.
fn whole(n: i32, significand: u32, bias: u32) -> u64 {
    let (sign, size) = (u64::from(n < 0) << 15, u64::from(n.unsigned_abs()));
    match size.checked_ilog2() {
        None => sign,
        Some(e) => sign | u64::from(e + bias) << significand | (size << (significand - e)) & ((1 << significand) - 1),
    }
}

#[test]
fn halves_of_whole_numbers() {
    type Form = (&'static str, fn(i32, i32, i32) -> i32);
    let forms: [Form; 7] = [
        ("add", |a, b, _| a + b),
        ("sub", |a, b, _| a - b),
        ("mul", |a, b, _| a * b),
        ("fma.rn", |a, b, c| a * b + c),
        ("fma.rn.relu", |a, b, c| (a * b + c).max(0)),
        ("min", |a, b, _| a.min(b)),
        ("max", |a, b, _| a.max(b)),
    ];
    for (ty, significand, bias) in [("f16", 10, 15), ("bf16", 7, 127)] {
        for (op, of) in forms {
            // Numbers from 1 to 11, either sign: all results have at most 8 bits. 0 is left out for its sign.
            let numbers: Vec<u64> = (-11..=11).filter(|&n| n != 0).map(|n| whole(n, significand, bias)).collect();
            let back =
                |bits: u64| (-11..=11).find(|&n| n != 0 && whole(n, significand, bias) == bits & 0xffff).unwrap();
            let pick = |r: &mut Random| (0..4).fold(0, |w, k| w | numbers[r.next() as usize % 22] << (16 * k));
            let operands = if op.starts_with("fma") { "%h0, %h1, %h2" } else { "%h0, %h1" };
            assert_form_of("sm_90", &format!("{op}.{ty} %h9, {operands}"), &mut Random(3), pick, |[a, b, c, _]| {
                whole(of(back(a), back(b), back(c)), significand, bias)
            });
            let pairs = operands.replace('h', "r");
            assert_form_of("sm_90", &format!("{op}.{ty}x2 %r9, {pairs}"), &mut Random(4), pick, |[a, b, c, _]| {
                let part = |i: u32| whole(of(back(a >> i), back(b >> i), back(c >> i)), significand, bias);
                part(0) | part(16) << 16
            });
        }
    }
    let of = |bits: u64| (-11..=11).find(|&n| whole(n, 10, 15) == bits & 0xffff).unwrap();
    let pick = |r: &mut Random| whole((r.next() % 23) as i32 - 11, 10, 15);
    for (question, holds) in [("ne", [true, false, true]), ("le", [true, true, false]), ("gtu", [false, false, true])] {
        assert_form_of("sm_80", &format!("setp.{question}.f16 %p0, %h0, %h1"), &mut Random(5), pick, |[a, b, ..]| {
            u64::from(holds[(of(a).cmp(&of(b)) as i32 + 1) as usize])
        });
    }
}

#[test]
fn warps_exchange_numbers() {
    assert_form("redux.sync.add.s32 %r9, 3, -1", |_| 96);
    // All lanes of the first warp see whose values are equal: here of 64 bits that differ above bit 31 alone.
    let body = "and.b64 %x4, %x10, 8; shl.b64 %x4, %x4, 40; match.any.sync.b64 %r9, %x4, -1; match.all.sync.b64 %r5|%p0, %x4, -1;
        match.all.sync.b64 %r6|%p1, 5, -1; selp.u32 %r7, 1, 0, %p0; selp.u32 %r8, 1, 0, %p1; mov.b64 %x5, {%r9, %r5};
        st.global.u64 [%x14], %x5; mov.b64 %x5, {%r6, %r7}; st.global.u64 [%x14+8], %x5;";
    let out = run(&text("sm_80", "8.0", 2, body), &vec![0; 128], 2).unwrap();
    for lane in 0..32 {
        assert_eq!(out[2 * lane], if lane % 2 == 0 { 0x5555_5555 } else { 0xaaaa_aaaa });
        assert_eq!(out[2 * lane + 1], LOW);
    }
    // Half of a warp alone.
    let body = "and.b32 %r4, %r12, 1; setp.eq.u32 %p0, %r4, 1; mov.u32 %r9, 7; @!%p0 bra OUT; vote.sync.ballot.b32 %r9, %p0, 0xaaaaaaaa;
        shfl.sync.up.b32 %r5, %r12, 2, 0, 0xaaaaaaaa; add.u32 %r9, %r9, %r5; OUT: cvt.u64.u32 %x9, %r9; st.global.u64 [%x14], %x9;";
    let out = run(&text("sm_80", "8.0", 1, body), &vec![0; 128], 1).unwrap();
    for lane in 0..32u64 {
        let from = if lane >= 2 { lane - 2 } else { lane };
        assert_eq!(out[lane as usize], if lane % 2 == 0 { 7 } else { 0xaaaa_aaaa + from });
    }
}

/// What 64 threads leave in a word by an atomic, twice each, and what each got the first time.
fn atomic(name: &str, first: u64, space: &str, seed: u64) -> (u64, Vec<u64>) {
    let (op, ty) = name.split_once('.').unwrap();
    let (r, widen) = if ty.ends_with("64") { ("x", "") } else { ("r", "cvt.u64.u32 %x9, %r9;") };
    let address = if space == "shared" { "%r4" } else { "%x4" };
    let body = format!(
        "sub.u64 %x4, %x14, %x16; mov.u32 %r4, some; setp.eq.u32 %p0, %r12, 0; mov.b64 %x5, {first};
        @%p0 st.{space}.u64 [{address}], %x5; bar.sync 0;
        atom.{space}.{op}.{ty} %{r}9, [{address}], %{r}0; red.{space}.{op}.{ty} [{address}], %{r}0; {widen}
        bar.sync 0; mov.u64 %x8, 0; @%p0 ld.{space}.u64 %x8, [{address}]; bar.sync 0;
        st.global.u64 [%x14], %x8; st.global.u64 [%x14+8], %x9;"
    );
    let operands: Vec<u64> = (0..256).map(|i| if i < 64 { value(i) } else { 0 }).collect();
    let (out, _) = run_by(&text("sm_80", "8.0", 2, &body), &operands, 2, 64, seed, 3).unwrap();
    (out[0], out.iter().skip(1).step_by(2).copied().collect())
}

fn value(thread: u64) -> u64 {
    thread * 37 % 64 + 3
}

#[test]
fn atomics_leave_the_same_in_any_order() {
    type Form = (&'static str, u64, fn(u64, u64) -> u64);
    let forms: [Form; 11] = [
        ("add.u32", 5, |old, v| (old + v) & LOW),
        ("add.s32", 5, |old, v| (old + v) & LOW),
        ("add.u64", LOW, |old, v| old + v),
        ("min.u32", 1 << 31, |old, v| old.min(v)),
        ("max.u32", 3, |old, v| old.max(v)),
        ("min.s32", 5, |old, v| (old as i32).min(v as i32) as u32 as u64),
        ("max.s32", 1 << 31, |old, v| (old as i32).max(v as i32) as u32 as u64),
        ("max.u64", 1 << 40, |old, v| old.max(v)),
        ("and.b32", LOW, |old, v| old & v),
        ("or.b32", 1 << 20, |old, v| old | v),
        ("xor.b64", 1 << 40, |old, v| old ^ v),
    ];
    for (name, first, of) in forms {
        for (space, seed) in [("global", 0), ("global", 9), ("shared", 1)] {
            let (left, got) = atomic(name, first, space, seed);
            let all = (0..64).chain(0..64).fold(first, |old, i| of(old, value(i)));
            assert_eq!(left, all, "{name} in {space}");
            if name == "add.u64" {
                // Each sum on the way is met once.
                let distinct: std::collections::HashSet<u64> = got.iter().copied().collect();
                assert!(distinct.len() == 64 && got.contains(&first) && got.iter().all(|&g| g < left));
            }
        }
    }
}

#[test]
fn atomics_that_wrap_around() {
    let wrap = |op: &str| {
        let body = format!(
            "sub.u64 %x4, %x14, %x16; setp.eq.u32 %p0, %r12, 0; @%p0 st.global.u64 [%x4], 2; bar.sync 0;
            red.global.{op}.u32 [%x4], 9; bar.sync 0; mov.u64 %x8, 0; @%p0 ld.global.u64 %x8, [%x4]; bar.sync 0;
            st.global.u64 [%x14], %x8;"
        );
        run_by(&text("sm_80", "8.0", 1, &body), &[0; 256], 1, 64, 1, 1).unwrap().0[0]
    };
    assert_eq!((wrap("inc"), wrap("dec")), ((2 + 64) % 10, (2 + 1000 - 64) % 10));
}

#[test]
fn one_thread_wins_a_swap_and_the_seed_says_which() {
    let swap = "sub.u64 %x4, %x14, %x16; setp.eq.u32 %p0, %r12, 0; @%p0 st.global.u64 [%x4], 0; bar.sync 0; add.u32 %r5, %r12, 1;
        atom.global.cas.b32 %r9, [%x4], 0, %r5; bar.sync 0; atom.global.exch.b32 %r6, [%x4+4], %r5; bar.sync 0; mov.u64 %x9, 0;
        @%p0 ld.global.u64 %x9, [%x4]; bar.sync 0; st.global.u64 [%x14], %x9; cvt.u64.u32 %x8, %r9; st.global.u64 [%x14+8], %x8;";
    let mut winners = std::collections::HashSet::new();
    for seed in 0..20 {
        let (out, _) = run_by(&text("sm_80", "8.0", 2, swap), &vec![0; 256], 2, 64, seed, 1).unwrap();
        let winner = out[0] & LOW;
        assert!((1..=64).contains(&winner) && (1..=64).contains(&(out[0] >> 32)));
        // The winner got 0, all others the winner.
        for i in 0..64 {
            assert_eq!(out[2 * i + 1], if i as u64 + 1 == winner { 0 } else { winner });
        }
        winners.insert(winner);
    }
    assert!(winners.len() > 5, "the seed changes who is first: {winners:?}");
}
