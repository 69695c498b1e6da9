//! Loads, stores, atomics and asynchronous copies.

use super::instruction::{NOT_KNOWN, braced};
use super::kernel::{Body, Name};
use crate::code::{Access, Action, Address, Atomic, Load, Space};
use crate::ops::Int;

/// Hints about caches, which change no result.
fn is_hint(modifier: &str) -> bool {
    matches!(modifier, "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "weak")
        || modifier.starts_with("L1::")
        || modifier.starts_with("L2::")
}

impl Body {
    pub(super) fn memory(&mut self, form: &str, list: &[&str]) -> Result<Action, String> {
        let mut parts: Vec<&str> = form.split('.').collect();
        match parts.remove(0) {
            "ld" => self.load(&parts, list),
            "st" => self.store(&parts, list),
            "cp" => self.copy(&parts, list),
            base => self.atomic(base == "atom", &parts, list),
        }
    }

    /// `[register + offset]`
    fn address(&mut self, text: &str) -> Result<Address, String> {
        let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).ok_or("no address")?.trim();
        let (base, offset) = match inner.rsplit_once('+') {
            Some((base, offset)) => (base.trim(), offset.trim().parse().map_err(|_| "no offset")?),
            None => match inner.rsplit_once('-').filter(|(base, _)| !base.is_empty()) {
                Some((base, offset)) => (base.trim(), -offset.trim().parse::<i64>().map_err(|_| "no offset")?),
                None => (inner, 0),
            },
        };
        if let Some(Name::Predicate(_)) = self.find(base) {
            return Err("no address".into());
        }
        Ok(Address { base: self.source(base)?, offset })
    }

    fn load(&mut self, modifiers: &[&str], list: &[&str]) -> Result<Action, String> {
        let [to, at] = list else { return Err("expected two operands".into()) };
        let (mut space, mut constant, mut n, mut int, mut is_parameter) = (Space::Generic, false, 1, None, false);
        for &modifier in modifiers {
            match modifier {
                "global" => space = Space::Global,
                "shared" | "shared::cta" => space = Space::Shared,
                "param" | "param::entry" => is_parameter = true,
                "nc" => constant = true,
                "volatile" => {}
                "v2" => n = 2,
                "v4" => n = 4,
                _ if is_hint(modifier) => {}
                _ => int = Some(element(modifier).filter(|_| int.is_none()).ok_or(NOT_KNOWN)?),
            }
        }
        let int = int.ok_or(NOT_KNOWN)?;
        let to = braced(to).iter().map(|t| self.target(t)).collect::<Result<Vec<_>, _>>()?;
        let at = self.address(at)?;
        if to.len() != n {
            return Err("registers that are too few or too many".into());
        }
        if to.iter().any(|&(_, width)| width < int.bits) {
            return Err("a register that is too small".into());
        }
        let load = Load { int, to };
        Ok(match is_parameter {
            true => Action::Parameter { at, load },
            false => Action::Access { access: Access::Load { load, constant }, space, at },
        })
    }

    fn store(&mut self, modifiers: &[&str], list: &[&str]) -> Result<Action, String> {
        let [at, from] = list else { return Err("expected two operands".into()) };
        let (mut space, mut n, mut int) = (Space::Generic, 1, None);
        for &modifier in modifiers {
            match modifier {
                "global" => space = Space::Global,
                "shared" | "shared::cta" => space = Space::Shared,
                "volatile" => {}
                "v2" => n = 2,
                "v4" => n = 4,
                _ if is_hint(modifier) => {}
                _ => int = Some(element(modifier).filter(|_| int.is_none()).ok_or(NOT_KNOWN)?),
            }
        }
        let from = self.sources(&braced(from))?;
        if from.len() != n {
            return Err("registers that are too few or too many".into());
        }
        let bytes = int.ok_or(NOT_KNOWN)?.bits as usize / 8;
        Ok(Action::Access { access: Access::Store { bytes, from }, space, at: self.address(at)? })
    }

    fn atomic(&mut self, answers: bool, modifiers: &[&str], list: &[&str]) -> Result<Action, String> {
        let (mut space, mut op, mut ty) = (Space::Generic, None, None);
        for &modifier in modifiers {
            match modifier {
                "global" => space = Space::Global,
                "shared" | "shared::cta" => space = Space::Shared,
                "relaxed" | "gpu" | "cta" | "sys" => {}
                _ if op.is_none() => op = Some(operation(modifier).ok_or(NOT_KNOWN)?),
                _ => ty = Some(modifier).filter(|_| ty.is_none()),
            }
        }
        let (op, ty) = (op.ok_or(NOT_KNOWN)?, ty.ok_or(NOT_KNOWN)?);
        if ty.contains('f') {
            return Err("a sum of floats by atomics, whose bits depend on the order".into());
        }
        let int = Int::named(ty).filter(|int| int.bits >= 32).ok_or(NOT_KNOWN)?;
        let is_bits = ty.starts_with('b');
        let known = match op {
            Atomic::Add => !is_bits && ty != "s64",
            Atomic::Min | Atomic::Max => !is_bits,
            Atomic::Increment | Atomic::Decrement => ty == "u32",
            _ => is_bits,
        };
        let n = 1 + usize::from(op == Atomic::CompareAndSwap);
        if !known || list.len() != 1 + n + usize::from(answers) {
            return Err(NOT_KNOWN.into());
        }
        let (to, list) = if answers { (Some(self.target(list[0])?.0), &list[1..]) } else { (None, list) };
        let at = self.address(list[0])?;
        let sources = [self.source(list[1])?, self.source(list[n])?];
        Ok(Action::Access { access: Access::Atomic { op, int, sources, to }, space, at })
    }

    fn copy(&mut self, modifiers: &[&str], list: &[&str]) -> Result<Action, String> {
        match (modifiers, list) {
            (["async", "commit_group"], []) => Ok(Action::Commit),
            (["async", "wait_all"], []) => Ok(Action::WaitGroups(None)),
            (["async", "wait_group"], [n]) => Ok(Action::WaitGroups(Some(n.parse().map_err(|_| "no number")?))),
            (["async", cache, space, "global", hints @ ..], [to, from, bytes, given @ ..])
                if hints.iter().all(|h| is_hint(h)) && given.len() <= 1 =>
            {
                let known = match (*cache, *bytes) {
                    ("ca", "4" | "8" | "16") | ("cg", "16") => matches!(*space, "shared" | "shared::cta"),
                    _ => false,
                };
                let bytes = bytes.parse().ok().filter(|_| known).ok_or(NOT_KNOWN)?;
                let given = given.first().map(|g| self.source(g)).transpose()?;
                Ok(Action::CopyAsync { to: self.address(to)?, from: self.address(from)?, bytes, given })
            }
            _ => Err(NOT_KNOWN.into()),
        }
    }
}

fn element(name: &str) -> Option<Int> {
    Int::named(name.strip_prefix('f').map_or(name, |bits| if bits == "32" { "u32" } else { "u64" }))
        .filter(|_| !name.starts_with('f') || matches!(name, "f32" | "f64"))
}

fn operation(name: &str) -> Option<Atomic> {
    Some(match name {
        "add" => Atomic::Add,
        "min" => Atomic::Min,
        "max" => Atomic::Max,
        "and" => Atomic::And,
        "or" => Atomic::Or,
        "xor" => Atomic::Xor,
        "exch" => Atomic::Exchange,
        "cas" => Atomic::CompareAndSwap,
        "inc" => Atomic::Increment,
        "dec" => Atomic::Decrement,
        _ => return None,
    })
}
