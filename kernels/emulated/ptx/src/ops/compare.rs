//! Comparisons, and what is done with their outcomes: 32 bits, one a lane.

use super::floats::{d, f};
use super::round::F16;
use super::{Int, Row, each};
use std::cmp::Ordering::{self, Equal, Greater, Less};

type Lanes = Box<dyn Fn(&[&Row; 4], u32) -> u32 + Send + Sync>;

/// A question about one or two rows.
pub(crate) struct Compare {
    pub(crate) n_sources: usize,
    pub(crate) run: Lanes,
    /// How `setp` joins the outcome with a third operand.
    pub(crate) join: Option<Logic>,
}

/// An operation of predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

impl Logic {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "and" => Self::And,
            "or" => Self::Or,
            "xor" => Self::Xor,
            _ => return None,
        })
    }

    pub(crate) fn join(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// `setp` and `testp`.
pub(crate) fn compare(form: &str) -> Option<Compare> {
    if let Some(class) = form.strip_prefix("testp.").and_then(|c| c.strip_suffix(".f32")) {
        return test(class);
    }
    let mut parts = form.strip_prefix("setp.")?.split('.');
    let (question, second) = (parts.next()?, parts.next()?);
    let join = Logic::named(second);
    let ty = if join.is_some() { parts.next()? } else { second };
    if parts.next().is_some() {
        return None;
    }
    let run = match ty {
        "f32" => floats(question, |a, b| f(a).partial_cmp(&f(b)))?,
        "f64" => floats(question, |a, b| d(a).partial_cmp(&d(b)))?,
        "f16" => floats(question, |a, b| F16.value(a & 0xffff).partial_cmp(&F16.value(b & 0xffff)))?,
        _ => {
            let int = Int::named(ty).filter(|int| int.bits > 8)?;
            let equality_alone = ty.starts_with('b');
            integers(question, int).filter(|_| !equality_alone || matches!(question, "eq" | "ne"))?
        }
    };
    Some(Compare { n_sources: 2, run, join })
}

fn ask(is: impl Fn(u64, u64) -> bool + Send + Sync + 'static) -> Lanes {
    Box::new(move |s, mask| {
        let mut out = 0;
        each(mask, |l| out |= u32::from(is(s[0][l], s[1][l])) << l);
        out
    })
}

fn integers(question: &str, int: Int) -> Option<Lanes> {
    // Numbers with the sign in front compare as unsigned ones once that bit is flipped.
    let flip = if int.signed { 1 << (int.bits - 1) } else { 0 };
    let key = move |v: u64| int.cut(v) ^ flip;
    Some(match (question, int.signed) {
        ("eq", _) => ask(move |a, b| key(a) == key(b)),
        ("ne", _) => ask(move |a, b| key(a) != key(b)),
        ("lt", _) | ("lo", false) => ask(move |a, b| key(a) < key(b)),
        ("le", _) | ("ls", false) => ask(move |a, b| key(a) <= key(b)),
        ("gt", _) | ("hi", false) => ask(move |a, b| key(a) > key(b)),
        ("ge", _) | ("hs", false) => ask(move |a, b| key(a) >= key(b)),
        _ => return None,
    })
}

fn floats(question: &str, order: impl Fn(u64, u64) -> Option<Ordering> + Send + Sync + 'static) -> Option<Lanes> {
    // The letter u: true of NaN as well.
    let of_nan = question.len() == 3 && question.ends_with('u');
    let accepts: fn(Ordering) -> bool = match question.strip_suffix('u').filter(|_| of_nan).unwrap_or(question) {
        "eq" => |o| o == Equal,
        "ne" => |o| o != Equal,
        "lt" => |o| o == Less,
        "le" => |o| o != Greater,
        "gt" => |o| o == Greater,
        "ge" => |o| o != Less,
        "num" => return Some(ask(move |a, b| order(a, b).is_some())),
        "nan" => return Some(ask(move |a, b| order(a, b).is_none())),
        _ => return None,
    };
    Some(ask(move |a, b| order(a, b).map_or(of_nan, accepts)))
}

fn test(class: &str) -> Option<Compare> {
    let is: fn(f32) -> bool = match class {
        "finite" => f32::is_finite,
        "infinite" => f32::is_infinite,
        "number" => |x| !x.is_nan(),
        "notanumber" => f32::is_nan,
        // A card counts zeros as normal.
        "normal" => |x| x.is_normal() || x == 0.0,
        "subnormal" => f32::is_subnormal,
        _ => return None,
    };
    let run: Lanes = Box::new(move |s, mask| {
        let mut out = 0;
        each(mask, |l| out |= u32::from(is(f(s[0][l]))) << l);
        out
    });
    Some(Compare { n_sources: 1, run, join: None })
}
