//! `cvt`.

use super::floats::{d, f, to_f32};
use super::halves::relu;
use super::round::{BF16, F16, F32, Format, Round, odd};
use super::{Allowed, Compute, Int, one, two};

/// A form that begins with `cvt.`, for a register of `width` bits.
pub(super) fn convert(form: &str, width: u32, allowed: Allowed) -> Option<Compute> {
    let mut parts = form.split('.').skip(1).peekable();
    let mut rounding = parts.next_if(|p| p.len() <= 3 && p.starts_with('r')).unwrap_or_default();
    let saturates = parts.next_if_eq(&"sat").is_some();
    let has_relu = parts.next_if_eq(&"relu").is_some();
    let (to, from) = (parts.next()?, parts.next()?);
    if parts.next().is_some() || (has_relu && (to, from) != ("bf16", "f32")) {
        return None;
    }
    // To a whole number: `rni` and so on.
    let whole = rounding.strip_suffix('i').filter(|r| r.len() == 2);
    rounding = whole.unwrap_or(rounding);
    let round = if rounding.is_empty() { None } else { Some(Round::named(rounding)?) };
    let of_half = |name: &str| match name {
        "f16" => Some(F16),
        "bf16" => Some(BF16),
        _ => None,
    };
    match (Int::named(to), Int::named(from)) {
        (Some(to), Some(from)) if round.is_none() => return Some(between(to, from, saturates, width)),
        (Some(to), None) if whole.is_some() && !saturates => return to_integer(to, from, round?, width),
        (None, Some(from)) if whole.is_none() && !saturates => return of_integer(to, from, round?),
        (None, None) => {}
        _ => return None,
    }
    if saturates {
        // A card makes 0 of NaN and of -0.
        let clamp = |a| if f(a) > 0.0 { f(a).min(1.0).to_bits().into() } else { 0 };
        return (form == "cvt.sat.f32.f32").then(|| one(clamp));
    }
    if let ("f32", "f32", Some(round)) = (to, from, round.filter(|_| whole.is_some())) {
        return Some(one(move |a| to_f32(round.whole(f(a).into()) as f32)));
    }
    if whole.is_some() {
        return None;
    }
    match (to, from, round) {
        ("f64", "f32", None) => Some(one(|a| if f(a).is_nan() { wide_nan(a) } else { f64::from(f(a)).to_bits() })),
        ("f32", "f64", Some(round)) => {
            Some(one(move |a| if d(a).is_nan() { narrow_nan(a) } else { F32.round(d(a), round) }))
        }
        ("f32", "f16", None) => Some(one(|a| to_f32(F16.value(a & 0xffff) as f32))),
        ("f32", "bf16", None) if allowed.target >= 90 => Some(one(|a| (a & 0xffff) << 16)),
        (_, "f32", Some(Round::Down | Round::Up)) => None,
        ("f16x2" | "bf16x2", "f32", Some(round)) => {
            let format = of_half(to.strip_suffix("x2")?)?;
            Some(two(move |high, low| format.of_f32(high, round) << 16 | format.of_f32(low, round)))
        }
        (_, "f32", Some(round)) => {
            let format = of_half(to)?;
            match has_relu {
                true => Some(one(move |a| relu(format, format.of_f32(a, round)))),
                false => Some(one(move |a| format.of_f32(a, round))),
            }
        }
        _ => None,
    }
}

impl Format {
    fn of_f32(self, bits: u64, round: Round) -> u64 {
        self.round(f(bits).into(), round)
    }
}

// Between `f32` and `f64` the payload of a NaN goes along, quiet.

fn narrow_nan(bits: u64) -> u64 {
    (bits >> 63) << 31 | 0x7fc0_0000 | bits >> 29 & 0x3f_ffff
}

fn wide_nan(bits: u64) -> u64 {
    (bits >> 31 & 1) << 63 | 0x7ff8_0000_0000_0000 | (bits & 0x7f_ffff) << 29
}

fn between(to: Int, from: Int, saturates: bool, width: u32) -> Compute {
    if saturates {
        one(move |a| to.widened(to.saturate(from.value(a)), width))
    } else {
        one(move |a| to.widened(to.cut(from.value(a) as u64), width))
    }
}

/// Numbers outside of the type become its nearest. NaN becomes 0, but the highest bit alone in 64 bits or from `f64`.
fn to_integer(to: Int, from: &str, round: Round, width: u32) -> Option<Compute> {
    let of = move |x: f64, nan: u64| if x.is_nan() { nan } else { to.saturate(round.whole(x) as i128) };
    let top = 1 << (to.bits - 1);
    let nan = if to.bits == 64 { top } else { 0 };
    Some(match from {
        "f32" => one(move |a| to.widened(of(f(a).into(), nan), width)),
        "f64" => one(move |a| to.widened(of(d(a), top), width)),
        _ => return None,
    })
}

fn of_integer(to: &str, from: Int, round: Round) -> Option<Compute> {
    // The nearest f64, and the sign of what it lacks.
    let wide = move |a: u64| {
        let v = from.value(a);
        let near = v as f64;
        (near, (v - near as i128) as f64)
    };
    Some(match to {
        "f32" => one(move |a| {
            let (near, rest) = wide(a);
            F32.round(odd(near, rest), round)
        }),
        "f64" => one(move |a| {
            let (near, rest) = wide(a);
            let moved = match round {
                Round::Down if rest < 0.0 => near.next_down(),
                Round::Up if rest > 0.0 => near.next_up(),
                Round::Zero if rest < 0.0 && near > 0.0 => near.next_down(),
                Round::Zero if rest > 0.0 && near < 0.0 => near.next_up(),
                _ => near,
            };
            moved.to_bits()
        }),
        _ => return None,
    })
}
