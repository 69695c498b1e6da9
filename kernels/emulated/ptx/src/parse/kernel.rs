//! The body of a kernel: declarations, names and labels.

use super::text::operands;
use super::{Constant, Kernel};
use crate::code::{Action, Instruction, Predicate};
use crate::ops::Allowed;
use std::collections::HashMap;

/// Registers that are there from the start, in the rows of their places here.
pub(crate) const SPECIALS: [&str; 19] = [
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
    "%warpid",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
];

/// Predicates that are there from the start: never, always, and one that takes what nobody wants.
pub(crate) const NEVER: u16 = 0;
pub(crate) const ALWAYS: u16 = 1;
const SINK: u16 = 2;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Predicate(u16),
    /// A row and the width of the register.
    Row(u16, u32),
    Shared(u64),
    Dynamic,
    Parameter(u64),
}

pub(super) struct Body {
    pub(super) kernel: Kernel,
    pub(super) allowed: Allowed,
    /// One map a scope, the kernel's own first.
    scopes: Vec<HashMap<String, Name>>,
    labels: HashMap<String, usize>,
    tables: HashMap<String, Vec<String>>,
    /// A label that stands before a table of branch targets.
    last_label: Option<String>,
    constants: HashMap<Constant, u16>,
    /// Jumps whose labels are looked up at the end, with their lines.
    pub(super) jumps: Vec<(usize, String, u32)>,
}

impl Body {
    /// From `.entry name(parameters) directives`.
    pub(super) fn begin(header: &str, dynamic: Option<&str>, allowed: Allowed) -> Result<Self, String> {
        let (before, after) = header.split_once(".entry").ok_or("no kernel; functions are not known")?;
        if !before.split_whitespace().all(|w| matches!(w, ".visible" | ".weak")) {
            return Err("not known before a kernel".into());
        }
        let (name, list, directives) = match after.split_once('(') {
            Some((name, rest)) => {
                let (list, directives) = rest.split_once(')').ok_or("no end of parameters")?;
                (name, list, directives)
            }
            None => match after.trim().split_once(char::is_whitespace) {
                Some((name, directives)) => (name, "", directives),
                None => (after, "", ""),
            },
        };
        let rows = SPECIALS.iter().zip(0..).map(|(name, row)| ((*name).to_owned(), Name::Row(row, 32)));
        let mut own: HashMap<String, Name> = rows.collect();
        own.extend(dynamic.map(|name| (name.to_owned(), Name::Dynamic)));
        let (mut params, mut end) = (Vec::new(), 0usize);
        for parameter in operands(list) {
            let (name, align, bytes) = declared(parameter.strip_prefix(".param").ok_or("no parameter")?)?;
            let at = end.next_multiple_of(align);
            end = at + bytes.ok_or("a parameter without a size")?;
            own.insert(name.to_owned(), Name::Parameter(at as u64));
            params.push((at, end - at));
        }
        let kernel = Kernel {
            name: name.trim().into(),
            params,
            static_shared: 0,
            max_threads: max_threads(directives)?,
            may_be_fused: 0,
            not_exact: 0,
            code: Vec::new(),
            n_rows: SPECIALS.len(),
            n_predicates: usize::from(SINK) + 1,
            constants: Vec::new(),
        };
        Ok(Self {
            kernel,
            allowed,
            scopes: vec![own],
            labels: HashMap::new(),
            tables: HashMap::new(),
            last_label: None,
            constants: HashMap::new(),
            jumps: Vec::new(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.kernel.name
    }

    pub(super) fn open(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Whether the kernel's own scope ends.
    pub(super) fn close(&mut self) -> bool {
        self.scopes.pop();
        self.scopes.is_empty()
    }

    pub(super) fn label(&mut self, label: String) -> Result<(), String> {
        self.last_label = Some(label.clone());
        match self.labels.insert(label, self.kernel.code.len()) {
            Some(_) => Err("a label that is there already".into()),
            None => Ok(()),
        }
    }

    /// Looks up labels.
    pub(super) fn end(mut self) -> Result<Kernel, String> {
        let place = |label: &str| self.labels.get(label).copied().ok_or_else(|| format!("no label {label}"));
        for (at, label, line) in &self.jumps {
            let to = match self.tables.get(label) {
                Some(table) => {
                    let Action::Table { index, .. } = self.kernel.code[*at].action else {
                        return Err(format!("{label} is a table, not a label"));
                    };
                    let targets = table.iter().map(|l| place(l)).collect::<Result<_, _>>()?;
                    Action::Table { index, targets }
                }
                None => Action::Branch(place(label).map_err(|e| format!("{e} (line {line})"))?),
            };
            self.kernel.code[*at].action = to;
        }
        self.kernel.constants = self.constants.into_iter().map(|(constant, row)| (row, constant)).collect();
        Ok(self.kernel)
    }

    pub(super) fn statement(&mut self, text: &str, line: u32) -> Result<(), String> {
        let label = self.last_label.take();
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match first {
            ".reg" => return self.registers(rest),
            ".shared" => {
                let (name, align, bytes) = declared(rest)?;
                let at = self.kernel.static_shared.next_multiple_of(align);
                self.kernel.static_shared = at + bytes.ok_or("shared memory without a size")?;
                return self.declare(name, Name::Shared(at as u64));
            }
            ".branchtargets" => {
                let label = label.ok_or("no label before it")?;
                self.tables.insert(label, operands(rest).into_iter().map(str::to_owned).collect());
                return Ok(());
            }
            ".local" => return Err("local memory is not known".into()),
            _ if first.starts_with('.') => return Err("a directive that is not known".into()),
            _ => {}
        }
        let (text, guard) = match text.strip_prefix('@') {
            None => (text, None),
            Some(rest) => {
                let (name, rest) = rest.split_once(char::is_whitespace).ok_or("no instruction")?;
                let Predicate { register, negated } = self.predicate(name)?;
                (rest.trim(), Some((register, !negated)))
            }
        };
        let action = self.instruction(text, line)?;
        self.kernel.code.push(Instruction { action, guard, line });
        Ok(())
    }

    fn registers(&mut self, text: &str) -> Result<(), String> {
        let (ty, names) = text.trim().split_once(char::is_whitespace).ok_or("no name")?;
        let width = match ty {
            ".pred" => None,
            _ => Some(8 * bytes_of(ty).ok_or("an unknown type")? as u32),
        };
        for name in operands(names) {
            let (base, n) = match name.split_once('<') {
                Some((base, n)) => (base, Some(n.trim_end_matches('>').parse::<u32>().map_err(|_| "no number")?)),
                None => (name, None),
            };
            let mut one = |name: String| {
                let next = match width {
                    None => {
                        self.kernel.n_predicates += 1;
                        Name::Predicate(u16::try_from(self.kernel.n_predicates - 1).map_err(|_| "too many predicates")?)
                    }
                    Some(width) => Name::Row(self.row()?, width),
                };
                self.declare(&name, next)
            };
            match n {
                None => one(base.to_owned())?,
                Some(n) => (0..n).try_for_each(|i| one(format!("{base}{i}")))?,
            }
        }
        Ok(())
    }

    fn row(&mut self) -> Result<u16, String> {
        self.kernel.n_rows += 1;
        u16::try_from(self.kernel.n_rows - 1).map_err(|_| "too many registers".into())
    }

    fn declare(&mut self, name: &str, what: Name) -> Result<(), String> {
        match self.scopes.last_mut().and_then(|scope| scope.insert(name.to_owned(), what)) {
            Some(_) => Err(format!("{name} is declared already")),
            None => Ok(()),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Name> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied()
    }

    /// The row that has a value in all lanes.
    pub(super) fn constant(&mut self, constant: Constant) -> Result<u16, String> {
        if let Some(&row) = self.constants.get(&constant) {
            return Ok(row);
        }
        let row = self.row()?;
        self.constants.insert(constant, row);
        Ok(row)
    }

    /// A source: a register, an address or a number.
    pub(super) fn source(&mut self, text: &str) -> Result<u16, String> {
        let constant = match self.find(text) {
            Some(Name::Row(row, _)) => return Ok(row),
            Some(Name::Shared(at) | Name::Parameter(at)) => Constant::Number(at),
            Some(Name::Dynamic) => Constant::Dynamic,
            Some(Name::Predicate(_)) => return Err(format!("{text} is a predicate")),
            None => Constant::Number(number(text).ok_or_else(|| format!("{text} is not declared"))?),
        };
        self.constant(constant)
    }

    /// A register that takes a result, and its width.
    pub(super) fn target(&mut self, text: &str) -> Result<(u16, u32), String> {
        match self.find(text) {
            Some(Name::Row(row, width)) => Ok((row, width)),
            // A row that is never read.
            None if text == "_" => Ok((self.row()?, 64)),
            _ => Err(format!("{text} is not a declared register")),
        }
    }

    pub(super) fn predicate(&self, text: &str) -> Result<Predicate, String> {
        let (name, negated) = match text.strip_prefix('!') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let register = match (self.find(name), name) {
            (Some(Name::Predicate(register)), _) => register,
            (None, "0") => NEVER,
            (None, "1" | "-1") => ALWAYS,
            _ => return Err(format!("{name} is not a declared predicate")),
        };
        Ok(Predicate { register, negated })
    }

    pub(super) fn predicate_target(&self, text: &str) -> Result<u16, String> {
        match self.find(text) {
            Some(Name::Predicate(register)) => Ok(register),
            None if text == "_" => Ok(SINK),
            _ => Err(format!("{text} is not a declared predicate")),
        }
    }
}

fn bytes_of(ty: &str) -> Option<usize> {
    Some(match ty.strip_prefix('.')? {
        "b8" | "u8" | "s8" => 1,
        "b16" | "u16" | "s16" | "f16" => 2,
        "b32" | "u32" | "s32" | "f32" => 4,
        "b64" | "u64" | "s64" | "f64" => 8,
        _ => return None,
    })
}

/// Name, alignment and bytes of `.align 8 .b8 name[48]` or `.u64 .ptr .global .align 4 name`.
fn declared(text: &str) -> Result<(&str, usize, Option<usize>), String> {
    let mut words = text.split_whitespace().peekable();
    let (mut align, mut each, mut is_pointer, mut name) = (None, None, false, "");
    while let Some(word) = words.next() {
        match word {
            // What comes after `.ptr` is about the memory that a pointer points to.
            ".ptr" => is_pointer = true,
            ".align" => {
                let n =
                    words.next().and_then(|w| w.parse::<usize>().ok()).filter(|n| n.is_power_of_two() && *n <= 1 << 20);
                let n = n.ok_or("no alignment")?;
                align = if is_pointer { align } else { Some(n) };
            }
            _ if word.starts_with('.') => each = each.or(bytes_of(word)),
            _ => name = word,
        }
    }
    let each = each.ok_or("an unknown type")?;
    let (name, n) = match name.split_once('[') {
        Some((name, "]")) => (name, None),
        Some((name, n)) => (name, Some(n.trim_end_matches(']').parse::<usize>().map_err(|_| "no length")?)),
        None => (name, Some(1)),
    };
    // More than any card has; sums of sizes stay small.
    if n.is_some_and(|n| n > 1 << 30) {
        return Err("too large".into());
    }
    Ok((name, align.unwrap_or(each), n.map(|n| n * each)))
}

fn max_threads(directives: &str) -> Result<Option<u32>, String> {
    let mut out = None;
    for one in directives.split('.').map(str::trim).filter(|d| !d.is_empty()) {
        let (name, numbers) = one.split_once(char::is_whitespace).ok_or("a directive without a number")?;
        let numbers: Result<Vec<u32>, _> = operands(numbers).into_iter().map(str::parse).collect();
        let numbers = numbers.map_err(|_| "a directive without a number")?;
        match name {
            "maxntid" | "reqntid" => out = Some(numbers.iter().product()),
            "minnctapersm" | "maxnreg" => {}
            _ => return Err(format!("a directive that is not known: .{name}")),
        }
    }
    Ok(out)
}

/// A number: decimal or hexadecimal, perhaps negative, or the bits of a float.
fn number(text: &str) -> Option<u64> {
    if let Some(bits) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
        return u32::from_str_radix(bits, 16).ok().map(u64::from);
    }
    if let Some(bits) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
        return u64::from_str_radix(bits, 16).ok();
    }
    let (text, negative) = match text.strip_prefix('-') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let text = text.trim_end_matches('U');
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None if text.starts_with('0') && text.len() > 1 => return None,
        None => text.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}
