//! Texts that are refused, with the line and the form.

use crate::{Random, text};
use xc_emulated_ptx::{Module, Options, Refusal};

#[track_caller]
fn refusal(body: &str) -> String {
    match Module::parse(&text("sm_80", "8.0", 1, body), Options::default()) {
        Err(Refusal::Line { number, statement, what }) => {
            assert_eq!(number, 16, "{statement}: {what}");
            format!("{what}: {statement}")
        }
        Err(other) => panic!("{body}: {other}"),
        Ok(_) => panic!("{body} is accepted"),
    }
}

#[test]
fn modifiers_are_never_ignored() {
    for form in [
        "add.rn.ftz.f32 %f0, %f1, %f2",
        "add.rn.sat.f32 %f0, %f1, %f2",
        "sub.sat.f32 %f0, %f1, %f2",
        "mul.ftz.f32 %f0, %f1, %f2",
        "fma.rn.ftz.f32 %f0, %f1, %f2, %f3",
        "div.rn.ftz.f32 %f0, %f1, %f2",
        "div.full.f32 %f0, %f1, %f2",
        "sqrt.approx.f32 %f0, %f1",
        "sqrt.f32 %f0, %f1",
        "ex2.approx.ftz.f32 %f0, %f1",
        "lg2.approx.f32 %f0, %f1",
        "sin.approx.f32 %f0, %f1",
        "tanh.approx.f32 %f0, %f1",
        "min.ftz.f32 %f0, %f1, %f2",
        "abs.ftz.f32 %f0, %f1",
        "add.rz.f64 %fd0, %fd1, %fd2",
        "fma.rm.f64 %fd0, %fd1, %fd2, %fd3",
        "min.NaN.f64 %fd0, %fd1, %fd2",
        "setp.lt.ftz.f32 %p0, %f0, %f1",
        "setp.lt.b32 %p0, %r0, %r1",
        "cvt.ftz.f32.f32 %f0, %f1",
        "cvt.f32.s32 %f0, %r0",
        "cvt.rn.s32.f32 %r0, %f0",
        "cvt.rzi.sat.s32.f32 %r0, %f0",
        "cvt.rn.sat.f16.f32 %h0, %f0",
        "cvt.rm.f16.f32 %h0, %f0",
        "cvt.rn.tf32.f32 %r0, %f0",
        "cvt.f32.bf16 %f0, %h0",
        "cvt.rn.relu.f16.f32 %h0, %f0",
        "cvt.rn.f64.f32 %fd0, %f0",
        "cvt.f32.f64 %f0, %fd0",
        "add.sat.u32 %r0, %r1, %r2",
        "add.b32 %r0, %r1, %r2",
        "add.u8 %h0, %h1, %h2",
        "and.u32 %r0, %r1, %r2",
        "neg.u32 %r0, %r1",
        "add.cc.u32 %r0, %r1, %r2",
        "mul.u32 %r0, %r1, %r2",
        "mul.wide.u64 %x0, %x1, %x2",
        "popc.u32 %r0, %r1",
        "popc.b16 %r0, %h1",
        "add.rn.bf16x2 %r0, %r1, %r2",
        "dp4a.u32 %r0, %r1, %r2, %r3",
        "shfl.idx.b32 %r0, %r1, 0, 31",
        "vote.ballot.b32 %r0, %p0",
        "activemask.b32 %r0",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7}",
        "bar.sync 1",
        "bar.sync 0, 64",
        "bar.arrive 0, 64",
        "barrier.cluster.arrive",
        "atom.global.add.f32 %f0, [%x0], %f1",
        "atom.global.acquire.gpu.add.u32 %r0, [%x0], %r1",
        "atom.global.add.b32 %r0, [%x0], %r1",
        "atom.global.add.u16 %h0, [%x0], %h1",
        "red.global.inc.s32 [%x0], %r1",
        "ld.global.acquire.gpu.u32 %r0, [%x0]",
        "ld.local.u32 %r0, [%x0]",
        "ld.const.u32 %r0, [%x0]",
        "st.release.gpu.global.u32 [%x0], %r0",
        "ld.global.v3.u32 {%r0, %r1, %r2}, [%x0]",
        "ld.global.v2.u32 %r0, [%x0]",
        "ld.global.u64 %r0, [%x0]",
        "cp.async.cg.shared.global [%r0], [%x0], 8",
        "cp.async.ca.shared.global [%r0], [%x0], 12",
        "prefetch.global.L2 [%x0]",
        "call nobody",
        "nanosleep.u32 5",
        "wgmma.fence.sync.aligned",
        "mavo.u32 %r0, %r1",
        "mov.u32 %r0, %clock",
        "mov.b128 %x0, %x1",
        "isspacep.global %p0, %x0",
    ] {
        let what = refusal(&format!("{form};"));
        assert!(what.ends_with(form), "{what}");
    }
}

#[test]
fn operands_are_checked() {
    for form in [
        "add.u32 %r0, %r1",
        "add.u32 %r0, %r1, %r2, %r3",
        "add.u32 %r0, %r1, %q2",
        "add.u32 %r0, %r1, 0x",
        "add.u32 %p0, %r1, %r2",
        "mov.u32 %r99, %r0",
        "selp.b32 %r0, %r1, %r2, %r3",
        "bra NOWHERE",
        "setp.lt.and.s32 %p0, %r0, %r1",
        "@%p9 mov.u32 %r0, 1",
        "mov.b64 {%r0, %r1, %r2}, %x0",
        "st.global.u32 %x0, %r0",
        "ld.global.u32 %r0, [%p0]",
        ".local .align 4 .b8 depot[16]",
        ".reg .b32 %r<4>",
        ".const .b32 table",
        "shfl.sync.idx.b32 %r0, %r1, 0, 31",
    ] {
        let body = format!("{form};");
        let parsed = Module::parse(&text("sm_80", "8.0", 1, &body), Options::default());
        assert!(parsed.is_err(), "{form} is accepted");
    }
}

#[test]
fn what_a_text_may_leave_open_is_counted() {
    let body =
        "add.rn.f32 %f0, %f1, %f2; fma.rn.f32 %f0, %f1, %f2, %f3; mul.f32 %f0, %f1, %f2; sub.f64 %fd0, %fd1, %fd2;
        add.s32 %r0, %r1, %r2;";
    let module = Module::parse(&text("sm_80", "8.0", 1, body), Options::default()).unwrap();
    assert_eq!((module.kernels[0].may_be_fused, module.kernels[0].not_exact), (2, 0));
    let approximate = Options { approximate: true, ..Options::default() };
    let module = Module::parse(&text("sm_80", "8.0", 1, "ex2.approx.ftz.f32 %f0, %f1;"), approximate).unwrap();
    assert_eq!((module.kernels[0].may_be_fused, module.kernels[0].not_exact), (0, 1));
}

#[test]
fn comments_scopes_and_lines_may_stand_anywhere() {
    let body = "/* a comment; with { and
        more */ { .reg .b32 %inner; mov.u32 %inner, 3; { .reg .b32 %inner; mov.u32 %inner, 4; } add.u32 %r5, %inner, %r0; }
        mov.b64 %x9, { %r5 ,
          %r0 }; LABEL: st.global.u64 [ %x14 ], %x9; // the end";
    let operands: Vec<u64> = (0..128).collect();
    let out = crate::run(&text("sm_80", "8.0", 1, body), &operands, 1).unwrap();
    assert_eq!(out[..3], [3, 1 << 32 | 4, 2 << 32 | 5]);
}

#[test]
fn a_damaged_text_is_refused_or_read() {
    let whole = text(
        "sm_80",
        "8.0",
        1,
        "{ .reg .b32 %t; setp.lt.and.s32 %p0|%p1, %r0, %r1, !%p2; @!%p0 bra OUT; mov.b64 {%r4, %r5}, %x0; }
        ld.global.nc.v2.u32 {%r4, %r5}, [%x10+-8]; atom.global.cas.b32 %r6, [%x14], %r4, 0x7; shfl.sync.up.b32 %r7|%p3, %r4, 1, 0, -1;
        cp.async.ca.shared.global [%r4], [%x10], 4, 3; match.all.sync.b64 %r4|%p1, %x0, -1; bar.red.popc.u32 %r4, 0, !%p1;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f4, %f5, %f6, %f7};
        WHERE: .branchtargets OUT, OUT; brx.idx %r4, WHERE; OUT: lop3.b32 %r4, %r0, %r1, %r2, 0xCA;",
    );
    Module::parse(&whole, Options::default()).unwrap();
    let mut random = Random(5);
    let mut n_refused = 0;
    for _ in 0..4_000 {
        let mut bytes = whole.clone().into_bytes();
        for _ in 0..1 + random.next() % 3 {
            let at = random.next() as usize % bytes.len();
            let n = (random.next() % 12) as usize;
            match random.next() % 4 {
                0 => bytes[at] = b"%[]{}.,;:!@+-0x_ \n/*<>|"[random.next() as usize % 23],
                1 => drop(bytes.drain(at..(at + n).min(bytes.len()))),
                2 => bytes.truncate(bytes.len().saturating_sub(n).max(1)),
                _ => {
                    let piece = bytes[at..(at + n).min(bytes.len())].to_vec();
                    let to = random.next() as usize % bytes.len();
                    bytes.splice(to..to, piece);
                }
            }
        }
        n_refused += usize::from(Module::parse(&String::from_utf8(bytes).unwrap(), Options::default()).is_err());
    }
    assert!((1_000..4_000).contains(&n_refused), "{n_refused}");
}
