//! Each form of an instruction against a card's answers.
//!
//! `golden/` holds 583 kernels of one instruction with 64 inputs each, and what an H100 and an H200 (driver 580.159.04,
//! CUDA 13.0) answered, which was the same. A form either gives these bytes or is refused when it is loaded.

use xc_emulated_ptx::{Launch, Memory, Module, Options, launch};

const KERNEL: &str = "
.address_size 64
.visible .entry k(.param .u64 k_a, .param .u64 k_b, .param .u64 k_c, .param .u64 k_d, .param .u64 k_o) {
.reg .pred %p<8>; .reg .b16 %h<12>; .reg .b32 %r<40>; .reg .f32 %f<20>; .reg .f64 %fd<12>; .reg .b64 %x<40>;
ld.param.u64 %x10, [k_a]; ld.param.u64 %x11, [k_b]; ld.param.u64 %x12, [k_c]; ld.param.u64 %x13, [k_d];
ld.param.u64 %x14, [k_o];
mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x; mad.lo.s32 %r13, %r10, %r11, %r12;
mul.wide.u32 %x15, %r13, 8; mul.wide.u32 %x16, %r13, BYTES;
add.s64 %x10, %x10, %x15; add.s64 %x11, %x11, %x15; add.s64 %x12, %x12, %x15; add.s64 %x13, %x13, %x15;
add.s64 %x14, %x14, %x16;
ld.global.u64 %x0, [%x10]; ld.global.u64 %x1, [%x11]; ld.global.u64 %x2, [%x12]; ld.global.u64 %x3, [%x13];
cvt.u32.u64 %r0, %x0; cvt.u32.u64 %r1, %x1; cvt.u32.u64 %r2, %x2; cvt.u32.u64 %r3, %x3;
BODY
ret; }";

struct Form<'a> {
    name: &'a str,
    class: &'a str,
    text: String,
    words: usize,
    answers: Vec<u64>,
}

#[test]
fn every_form_gives_a_cards_bytes_or_is_refused() {
    let text = include_str!("golden/forms.txt");
    let mut bytes = &include_bytes!("golden/answers.bin")[..];
    let n = 64;
    let mut take = |n: usize, width: usize| -> Vec<u64> {
        let (now, later) = bytes.split_at(n * width);
        bytes = later;
        let number = |part: &[u8]| part.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
        now.chunks(width).map(number).collect()
    };
    let mut lines = text.lines().skip(1);
    let classes: Vec<&str> = lines.next().unwrap().split(' ').skip(2).collect();
    let inputs: Vec<(&str, Vec<u64>)> = classes.iter().map(|&c| (c, take(4 * n, 8))).collect();
    let forms: Vec<Form> = lines
        .map(|line| {
            let [name, class, words, width, target, version, body] =
                line.split(" | ").collect::<Vec<_>>().try_into().unwrap();
            let words: usize = words.parse().unwrap();
            let kernel = KERNEL.replace("BYTES", &(8 * words).to_string()).replace("BODY", body);
            let text = format!(".version {version}\n.target {target}\n{kernel}");
            Form { name, class, text, words, answers: take(n * words, width.parse().unwrap()) }
        })
        .collect();
    let (mut refused, mut wrong) = (Vec::new(), Vec::new());
    for form in &forms {
        let module = match Module::parse(&form.text, Options::default()) {
            Ok(module) => module,
            Err(refusal) => {
                if std::env::var("V").is_ok() {
                    println!("{} {refusal}", form.name);
                }
                refused.push(form.name);
                continue;
            }
        };
        let input = &inputs.iter().find(|(c, _)| *c == form.class).unwrap().1;
        let mut memory = Memory::default();
        memory.order.begin_after_all();
        let mut params = Vec::new();
        for operand in input.chunks(n) {
            let at = memory.alloc(8 * n);
            memory.write(at, &operand.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
            params.extend(at.to_le_bytes());
        }
        let out = memory.alloc(8 * n * form.words);
        params.extend(out.to_le_bytes());
        memory.order.begin_after_all();
        let how = Launch { grid: [(n / 32) as u32, 1, 1], block: [32, 1, 1], shared: 0, seed: 1, turn: 0 };
        let ran = launch(&mut memory, &module.kernels[0], &how, &params);
        if let Err(fault) = ran {
            wrong.push(format!("{}: {fault}", form.name));
            continue;
        }
        memory.order.begin_after_all();
        let got = memory.read(out, 8 * n * form.words).unwrap();
        let got: Vec<u64> = got.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
        let bad: Vec<usize> = (0..got.len()).filter(|&i| got[i] != form.answers[i]).collect();
        if let Some(&at) = bad.first() {
            let i = at / form.words;
            let operands: Vec<String> = (0..4).map(|k| format!("{:#x}", input[k * n + i])).collect();
            wrong.push(format!(
                "{}: {} of {} differ; thread {i}, {}: {:#x}, a card {:#x}",
                form.name,
                bad.len(),
                got.len(),
                operands.join(" "),
                got[at],
                form.answers[at]
            ));
        }
    }
    println!("{} forms, {} refused: {}", forms.len(), refused.len(), refused.join(" "));
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), forms.len(), wrong.join("\n"));
}
