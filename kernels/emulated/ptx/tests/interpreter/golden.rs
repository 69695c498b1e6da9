//! Each form of an instruction against a card's answers.
//!
//! `golden/` holds 583 kernels of one instruction with 64 inputs each, and what an H100 and an H200 (driver 580.159.04,
//! CUDA 13.0) answered, which was the same. A form either gives these bytes or is refused when it is loaded.

use crate::{run, text};
use xc_emulated_ptx::{Module, Options};

struct Form<'a> {
    name: &'a str,
    class: &'a str,
    text: String,
    words: usize,
    answers: Vec<u64>,
}

#[test]
fn every_form_gives_a_cards_bytes_or_is_refused() {
    let mut lines = include_str!("golden/forms.txt").lines().skip(1);
    let mut bytes = &include_bytes!("golden/answers.bin")[..];
    let n = 64;
    let mut take = |n: usize, width: usize| -> Vec<u64> {
        let (now, later) = bytes.split_at(n * width);
        bytes = later;
        now.chunks(width).map(|part| part.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b))).collect()
    };
    let classes: Vec<&str> = lines.next().unwrap().split(' ').skip(2).collect();
    let inputs: Vec<(&str, Vec<u64>)> = classes.iter().map(|&c| (c, take(4 * n, 8))).collect();
    let forms: Vec<Form> = lines
        .map(|line| {
            let [name, class, words, width, target, version, body] =
                line.split(" | ").collect::<Vec<_>>().try_into().unwrap();
            let words: usize = words.parse().unwrap();
            let answers = take(n * words, width.parse().unwrap());
            Form { name, class, text: text(target, version, words, body), words, answers }
        })
        .collect();
    assert!(bytes.is_empty());
    let (mut refused, mut wrong) = (Vec::new(), Vec::new());
    for form in &forms {
        if Module::parse(&form.text, Options::default()).is_err() {
            refused.push(form.name);
            continue;
        }
        let input = &inputs.iter().find(|(c, _)| *c == form.class).unwrap().1;
        let got = match run(&form.text, input, form.words) {
            Ok(got) => got,
            Err(fault) => {
                wrong.push(format!("{}: {fault}", form.name));
                continue;
            }
        };
        if let Some(at) = (0..got.len()).find(|&i| got[i] != form.answers[i]) {
            let thread = at / form.words;
            let operands: Vec<String> = (0..4).map(|k| format!("{:#x}", input[k * n + thread])).collect();
            let operands = operands.join(", ");
            wrong.push(format!("{} of {operands}: {:#x}, a card {:#x}", form.name, got[at], form.answers[at]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), forms.len(), wrong.join("\n"));
    // What is refused is refused on purpose: it is not known to the bit, or kernels do not need it.
    let expected = [
        ".ftz.",
        ".sat.",
        ".approx.",
        ".full.",
        "rz.f64",
        "rm.f64",
        "rp.f64",
        "mul24",
        "mad24",
        "add.cc",
        "madc",
        "fns",
        "bmsk",
        "szext",
        "activemask",
        "tf32",
        "s8",
    ];
    let surprising: Vec<_> = refused.iter().filter(|name| !expected.iter().any(|e| name.contains(e))).collect();
    assert!(surprising.is_empty(), "{surprising:?} are refused");
    assert_eq!((forms.len(), refused.len()), (583, 49));
}
