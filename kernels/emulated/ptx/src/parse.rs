//! From text to instructions with numbered registers.

use crate::{Fault, fault};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F32,
    F64,
    Pred,
}

impl Ty {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "u8" | "b8" => Self::U8,
            "u16" | "b16" => Self::U16,
            "u32" | "b32" => Self::U32,
            "u64" | "b64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "pred" => Self::Pred,
            _ => return None,
        })
    }
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::U8 | Self::S8 | Self::Pred => 1,
            Self::U16 | Self::S16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
            _ => 8,
        }
    }
    pub(crate) fn signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }
    pub(crate) fn float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Mov,
    Pack,
    Unpack,
    Add,
    Sub,
    MulLo,
    MulHi,
    MulWide,
    MadLo,
    MadWide,
    Fma,
    Div,
    Rem,
    Min,
    Max,
    Neg,
    Abs,
    Not,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Popc,
    Brev,
    Clz,
    Bfind,
    Bfe,
    Bfi,
    Setp,
    Selp,
    Cvt,
    Sqrt,
    Rcp,
    Ex2,
    Lg2,
    Ld,
    St,
    Atom,
    Shfl,
    Vote,
    Bar,
    WarpBar,
    Mma,
    CpAsync,
    CpCommit,
    CpWait,
    Bra,
    Ret,
    Trap,
    Nop,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Param,
    Local,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Nearest,
    Zero,
    Down,
    Up,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sub {
    None,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Num,
    Nan,
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Idx,
    Bfly,
    Up,
    Down,
    All,
    Any,
    Ballot,
}
#[derive(Clone, Copy, Debug)]
pub(crate) enum Src {
    R(u16),
    I(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Ins {
    pub(crate) op: Op,
    pub(crate) ty: Ty,
    pub(crate) from: Ty,
    pub(crate) sub: Sub,
    pub(crate) space: Space,
    pub(crate) round: Round,
    /// NaN compares true; saturate; shift amount instead of position; the second predicate of `setp`.
    pub(crate) flag: bool,
    pub(crate) join: Option<Sub>,
    pub(crate) guard: Option<(u16, bool)>,
    pub(crate) dst: Vec<u16>,
    pub(crate) src: Vec<Src>,
    pub(crate) at: i64,
    pub(crate) line: u32,
}

/// An entry of a module.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    /// Offset and bytes of each parameter.
    pub params: Vec<(usize, usize)>,
    pub static_shared: usize,
    pub max_threads: Option<u32>,
    /// Additions and multiplications without a rounding mode: a driver may fuse them.
    pub may_be_fused: usize,
    /// Instructions whose result the architecture leaves open (`.approx`, `mma`).
    pub not_exact: usize,
    pub(crate) code: Vec<Ins>,
    pub(crate) n_regs: usize,
}

/// The kernels of a text.
pub struct Module {
    pub version: String,
    pub target: String,
    pub kernels: Vec<Kernel>,
}

pub(crate) const SPECIALS: [&str; 13] = [
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%laneid",
];

impl Module {
    /// # Errors
    /// An instruction or a form of one that is not known here.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let mut out = Self { version: String::new(), target: String::new(), kernels: Vec::new() };
        let mut now: Option<Body> = None;
        let mut dynamic = String::new();
        let (mut header, mut in_header) = (String::new(), false);
        for (number, line) in text.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let wrap = |e: Fault| Fault(format!("line {}: {}: {line}", number + 1, e.0));
            if let Some(v) = line.strip_prefix(".version") {
                out.version = v.trim().into();
                continue;
            }
            if let Some(v) = line.strip_prefix(".target") {
                out.target = v.trim().into();
                continue;
            }
            if line.starts_with(".address_size")
                || line.starts_with(".pragma")
                || line.starts_with(".file")
                || line.starts_with(".loc")
            {
                continue;
            }
            if line.starts_with(".extern .shared") {
                dynamic = line.split_whitespace().last().unwrap_or_default().trim_end_matches(['[', ']', ';']).into();
                continue;
            }
            if line.contains(".entry") {
                in_header = true;
                header.clear();
            }
            if in_header {
                header.push(' ');
                header.push_str(line);
                if line == "{" {
                    in_header = false;
                    now = Some(Body::begin(&header, &dynamic).map_err(wrap)?);
                }
                continue;
            }
            let Some(body) = &mut now else { return Err(wrap(Fault("outside of a kernel".into()))) };
            if line == "}" {
                if let Some(body) = now.take() {
                    out.kernels.push(body.end()?);
                }
                continue;
            }
            body.line(line, number as u32 + 1).map_err(wrap)?;
        }
        Ok(out)
    }

    /// The kernel of a name.
    pub fn kernel(&self, name: &str) -> Result<&Kernel, Fault> {
        self.kernels.iter().find(|k| k.name == name).map_or_else(|| fault(format!("no kernel {name}")), Ok)
    }
}

struct Body {
    kernel: Kernel,
    regs: HashMap<String, u16>,
    params: HashMap<String, usize>,
    shared: HashMap<String, u64>,
    labels: HashMap<String, usize>,
    jumps: Vec<(usize, String)>,
    dynamic: String,
}

impl Body {
    fn begin(header: &str, dynamic: &str) -> Result<Self, Fault> {
        let after = header.split(".entry").nth(1).unwrap_or_default();
        let (name, rest) = after.split_once('(').ok_or(Fault("no parameters".into()))?;
        let (list, tail) = rest.rsplit_once(')').ok_or(Fault("no end of parameters".into()))?;
        let mut regs: HashMap<String, u16> =
            SPECIALS.iter().enumerate().map(|(i, s)| ((*s).to_owned(), i as u16)).collect();
        regs.insert("_".into(), SPECIALS.len() as u16);
        let (mut params, mut places, mut at) = (HashMap::new(), Vec::new(), 0usize);
        for one in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let words: Vec<&str> = one.split_whitespace().collect();
            let (mut align, mut len) = (0, 0);
            let mut name = *words.last().unwrap_or(&"");
            let mut words = words.iter();
            while let Some(&word) = words.next() {
                if word == ".align" {
                    align = words.next().and_then(|w| w.parse().ok()).unwrap_or(1);
                } else if let Some(ty) = word.strip_prefix('.').and_then(Ty::of) {
                    len = ty.bytes();
                }
            }
            if let Some((base, n)) = name.split_once('[') {
                len *= n.trim_end_matches(']').parse::<usize>().map_err(|_| Fault("length".into()))?;
                name = base;
            }
            at = at.next_multiple_of(if align > 0 { align } else { len.max(1) });
            params.insert(name.to_owned(), at);
            places.push((at, len));
            at += len;
        }
        let max_threads =
            tail.split(".maxntid").nth(1).and_then(|t| t.split(',').next()).and_then(|t| t.trim().parse().ok());
        let kernel = Kernel {
            name: name.trim().into(),
            params: places,
            static_shared: 0,
            max_threads,
            may_be_fused: 0,
            not_exact: 0,
            code: Vec::new(),
            n_regs: SPECIALS.len() + 1,
        };
        Ok(Self {
            kernel,
            regs,
            params,
            shared: HashMap::new(),
            labels: HashMap::new(),
            jumps: Vec::new(),
            dynamic: dynamic.into(),
        })
    }

    fn end(mut self) -> Result<Kernel, Fault> {
        for (at, label) in &self.jumps {
            let to = self.labels.get(label).ok_or_else(|| Fault(format!("no label {label}")))?;
            self.kernel.code[*at].at = *to as i64;
        }
        Ok(self.kernel)
    }

    fn line(&mut self, line: &str, number: u32) -> Result<(), Fault> {
        if let Some(rest) = line.strip_prefix(".reg") {
            let name = rest.split_whitespace().nth(1).unwrap_or_default().trim_end_matches(';');
            let (base, n) = match name.split_once('<') {
                Some((b, n)) => (b, n.trim_end_matches('>').parse::<usize>().unwrap_or(1)),
                None => (name, 0),
            };
            if n == 0 {
                self.register(base);
            }
            for i in 0..n {
                self.register(&format!("{base}{i}"));
            }
            return Ok(());
        }
        if line.starts_with(".shared") {
            let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
            let align: usize =
                words.iter().position(|w| *w == ".align").and_then(|p| words[p + 1].parse().ok()).unwrap_or(1);
            let each =
                words.iter().filter_map(|w| w.strip_prefix('.').and_then(Ty::of)).map(Ty::bytes).next().unwrap_or(1);
            let last = words.last().copied().unwrap_or_default();
            let (name, n) = last
                .split_once('[')
                .map_or((last, Some(1)), |(name, n)| (name, n.trim_end_matches(']').parse::<usize>().ok()));
            let at = self.kernel.static_shared.next_multiple_of(align);
            self.shared.insert(name.to_owned(), at as u64);
            self.kernel.static_shared = at + each * n.ok_or(Fault("length".into()))?;
            return Ok(());
        }
        if let Some(label) = line.strip_suffix(':') {
            self.labels.insert(label.into(), self.kernel.code.len());
            return Ok(());
        }
        if line.starts_with(".local") || line.starts_with(".pragma") {
            return if line.starts_with(".pragma") { Ok(()) } else { fault("local memory") };
        }
        for one in line.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            self.instruction(one, number)?;
        }
        Ok(())
    }

    fn register(&mut self, name: &str) {
        self.regs.insert(name.to_owned(), self.kernel.n_regs as u16);
        self.kernel.n_regs += 1;
    }

    fn value(&self, text: &str, ty: Ty) -> Result<Src, Fault> {
        let text = text.trim();
        if let Some(&r) = self.regs.get(text) {
            return Ok(Src::R(r));
        }
        if let Some(&at) = self.shared.get(text) {
            return Ok(Src::I(at));
        }
        if let Some(&at) = self.params.get(text) {
            return Ok(Src::I(at as u64));
        }
        if text == self.dynamic {
            return Ok(Src::I(DYNAMIC));
        }
        if let Some(hex) = text.strip_prefix("0f") {
            return u32::from_str_radix(hex, 16).map(|b| Src::I(b.into())).map_err(|_| Fault(format!("number {text}")));
        }
        if let Some(hex) = text.strip_prefix("0d") {
            return u64::from_str_radix(hex, 16).map(Src::I).map_err(|_| Fault(format!("number {text}")));
        }
        let parsed = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse::<i64>().map(|v| v as u64).ok().or_else(|| text.parse().ok()),
        };
        let bits = parsed.ok_or_else(|| Fault(format!("operand {text}")))?;
        Ok(Src::I(if ty.bytes() < 8 { bits & ((1 << (8 * ty.bytes())) - 1) } else { bits }))
    }

    fn instruction(&mut self, text: &str, number: u32) -> Result<(), Fault> {
        let (mut text, mut guard) = (text, None);
        if let Some(rest) = text.strip_prefix('@') {
            let (p, rest) = rest.split_once(char::is_whitespace).ok_or(Fault("guard".into()))?;
            let (name, wanted) = match p.strip_prefix('!') {
                Some(n) => (n, false),
                None => (p, true),
            };
            guard = Some((*self.regs.get(name).ok_or(Fault("guard".into()))?, wanted));
            text = rest.trim();
        }
        let (full, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut parts = full.split('.');
        let base = parts.next().unwrap_or_default();
        let mods: Vec<&str> = parts.collect();
        let has = |m: &str| mods.contains(&m);
        let types: Vec<Ty> = mods.iter().filter_map(|m| Ty::of(m)).collect();
        let ty = types.first().copied().unwrap_or(Ty::U32);
        let from = types.get(1).copied().unwrap_or(ty);
        let space = if has("global") && base != "cvta" {
            Space::Global
        } else if has("shared") {
            Space::Shared
        } else if has("param") {
            Space::Param
        } else if has("local") {
            Space::Local
        } else {
            Space::Generic
        };
        let round = if has("rz") || has("rzi") {
            Round::Zero
        } else if has("rm") || has("rmi") {
            Round::Down
        } else if has("rp") || has("rpi") {
            Round::Up
        } else {
            Round::Nearest
        };
        let compare = |m: &str| {
            Some(match m {
                "eq" | "equ" => Sub::Eq,
                "ne" | "neu" => Sub::Ne,
                "lt" | "ltu" | "lo" => Sub::Lt,
                "le" | "leu" | "ls" => Sub::Le,
                "gt" | "gtu" | "hi" => Sub::Gt,
                "ge" | "geu" | "hs" => Sub::Ge,
                "num" => Sub::Num,
                "nan" => Sub::Nan,
                _ => return None,
            })
        };
        let logic = |m: &str| {
            Some(match m {
                "and" => Sub::And,
                "or" => Sub::Or,
                "xor" => Sub::Xor,
                "add" => Sub::Add,
                "min" => Sub::Min,
                "max" => Sub::Max,
                "exch" => Sub::Exch,
                "cas" => Sub::Cas,
                _ => return None,
            })
        };
        let (mut sub, mut flag, mut join) = (Sub::None, false, None);
        let rounds = has("rn") || has("rz") || has("rm") || has("rp");
        // Operands: at most one pair of braces each.
        let mut operands: Vec<String> = Vec::new();
        let mut depth = 0;
        for piece in rest.split(',') {
            if depth > 0 {
                if let Some(last) = operands.last_mut() {
                    last.push(',');
                    last.push_str(piece);
                }
            } else {
                operands.push(piece.trim().to_owned());
            }
            depth += piece.matches(['{', '[']).count();
            depth -= piece.matches(['}', ']']).count();
        }
        operands.retain(|o| !o.is_empty());
        let braced = |o: &str| {
            o.trim()
                .trim_start_matches('{')
                .trim_end_matches('}')
                .split(',')
                .map(|s| s.trim().to_owned())
                .collect::<Vec<_>>()
        };
        let is_braced = |i: usize| operands.get(i).is_some_and(|o| o.starts_with('{'));
        let op = match base {
            "mov" if is_braced(0) => Op::Unpack,
            "mov" if is_braced(1) => Op::Pack,
            "mov" | "cvta" => Op::Mov,
            "add" => Op::Add,
            "sub" => Op::Sub,
            "div" => Op::Div,
            "rem" => Op::Rem,
            "min" => Op::Min,
            "max" => Op::Max,
            "neg" => Op::Neg,
            "abs" => Op::Abs,
            "mul" if has("wide") => Op::MulWide,
            "mul" if has("hi") => Op::MulHi,
            "mul" => Op::MulLo,
            "mad" if has("wide") => Op::MadWide,
            "mad" if has("lo") => Op::MadLo,
            "fma" => Op::Fma,
            "not" => Op::Not,
            "and" => Op::And,
            "or" => Op::Or,
            "xor" => Op::Xor,
            "shl" => Op::Shl,
            "shr" => Op::Shr,
            "popc" => Op::Popc,
            "brev" => Op::Brev,
            "clz" => Op::Clz,
            "bfe" => Op::Bfe,
            "bfi" => Op::Bfi,
            "bfind" => {
                flag = has("shiftamt");
                Op::Bfind
            }
            "setp" => {
                sub = compare(mods[0]).ok_or(Fault("comparison".into()))?;
                flag = mods[0].ends_with('u') && ty.float();
                join = mods[1..].iter().find_map(|m| logic(m));
                Op::Setp
            }
            "selp" => Op::Selp,
            "cvt" => {
                flag = has("sat");
                Op::Cvt
            }
            "sqrt" => Op::Sqrt,
            "rcp" => Op::Rcp,
            "ex2" => Op::Ex2,
            "lg2" => Op::Lg2,
            "ld" | "ldu" => Op::Ld,
            "st" => Op::St,
            "atom" | "red" => {
                sub = mods.iter().find_map(|m| logic(m)).ok_or(Fault("operation".into()))?;
                Op::Atom
            }
            "shfl" => {
                sub = if has("idx") {
                    Sub::Idx
                } else if has("bfly") {
                    Sub::Bfly
                } else if has("up") {
                    Sub::Up
                } else {
                    Sub::Down
                };
                Op::Shfl
            }
            "vote" => {
                sub = if has("ballot") {
                    Sub::Ballot
                } else if has("all") {
                    Sub::All
                } else {
                    Sub::Any
                };
                Op::Vote
            }
            "bar" | "barrier" if has("warp") => Op::WarpBar,
            "bar" | "barrier" => Op::Bar,
            "mma" if full == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" => Op::Mma,
            "cp" if has("commit_group") => Op::CpCommit,
            "cp" if has("wait_group") => Op::CpWait,
            "cp" if has("async") => Op::CpAsync,
            "bra" => Op::Bra,
            "ret" | "exit" => Op::Ret,
            "trap" => Op::Trap,
            "membar" | "fence" => Op::Nop,
            _ => return fault("an instruction that is not known here"),
        };
        if matches!(op, Op::Add | Op::Sub | Op::MulLo) && ty.float() && !rounds {
            self.kernel.may_be_fused += 1;
        }
        if has("approx") || op == Op::Mma {
            self.kernel.not_exact += 1;
        }
        let (mut dst, mut src, mut at) = (Vec::new(), Vec::new(), 0i64);
        let reg =
            |s: &Self, name: &str| s.regs.get(name.trim()).copied().ok_or_else(|| Fault(format!("register {name}")));
        let address = |s: &Self, text: &str, at: &mut i64| -> Result<Src, Fault> {
            let inner = text.trim().trim_start_matches('[').trim_end_matches(']').trim();
            let (base, offset) = match inner.rsplit_once('+') {
                Some((b, o)) => (b, o.trim().parse::<i64>().map_err(|_| Fault(format!("offset {o}")))?),
                None => (inner, 0),
            };
            *at = offset;
            if let Some(&param) = s.params.get(base) {
                return Ok(Src::I(param as u64));
            }
            s.value(base, Ty::U64)
        };
        match op {
            Op::Bra => self.jumps.push((self.kernel.code.len(), operands[0].clone())),
            Op::Ret | Op::Trap | Op::Nop | Op::CpCommit => {}
            Op::Ld => {
                for d in braced(&operands[0]) {
                    dst.push(reg(self, &d)?);
                }
                src.push(address(self, &operands[1], &mut at)?);
            }
            Op::St => {
                src.push(address(self, &operands[0], &mut at)?);
                for s in braced(&operands[1]) {
                    src.push(self.value(&s, ty)?);
                }
            }
            Op::Atom => {
                let first = usize::from(base == "atom");
                if first == 1 {
                    dst.push(reg(self, &operands[0])?);
                }
                src.push(address(self, &operands[first], &mut at)?);
                for s in &operands[first + 1..] {
                    src.push(self.value(s, ty)?);
                }
            }
            Op::CpAsync => {
                src.push(address(self, &operands[0], &mut at)?);
                let mut offset = 0;
                src.push(address(self, &operands[1], &mut offset)?);
                src.push(Src::I(offset as u64));
                src.push(self.value(&operands[2], Ty::U32)?);
            }
            Op::CpWait | Op::Bar | Op::WarpBar => {
                for o in &operands {
                    src.push(self.value(o, Ty::U32)?);
                }
            }
            Op::Mma | Op::Unpack | Op::Pack => {
                for d in braced(&operands[0]) {
                    dst.push(reg(self, &d)?);
                }
                for o in &operands[1..] {
                    for s in braced(o) {
                        src.push(self.value(&s, ty)?);
                    }
                }
            }
            _ => {
                for d in operands[0].split('|') {
                    dst.push(reg(self, d)?);
                }
                let of = if op == Op::Cvt { from } else { ty };
                for o in &operands[1..] {
                    match o.strip_prefix('!') {
                        Some(p) => {
                            src.push(self.value(p, of)?);
                            src.push(Src::I(1));
                        }
                        None => src.push(self.value(o, of)?),
                    }
                }
            }
        }
        let code = Ins { op, ty, from, sub, space, round, flag, join, guard, dst, src, at, line: number };
        self.kernel.code.push(code);
        Ok(())
    }
}

/// Stands for the address of dynamic shared memory.
pub(crate) const DYNAMIC: u64 = 0x00d1_0000_0000_0000;
