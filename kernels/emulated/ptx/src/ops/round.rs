//! Rounding of exact results to formats of fewer bits, in all four directions.

/// A direction of rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Nearest,
    Zero,
    Down,
    Up,
}

impl Round {
    /// By the suffix of `rn`, `rz`, `rm`, `rp`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "rn" => Self::Nearest,
            "rz" => Self::Zero,
            "rm" => Self::Down,
            "rp" => Self::Up,
            _ => return None,
        })
    }

    /// The whole number next to x.
    pub(super) fn whole(self, x: f64) -> f64 {
        match self {
            Self::Nearest => x.round_ties_even(),
            Self::Zero => x.trunc(),
            Self::Down => x.floor(),
            Self::Up => x.ceil(),
        }
    }
}

/// A binary format: bits of the significand that are stored, and of the exponent.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) significand: u32,
    pub(super) exponent: u32,
}

pub(super) const F32: Format = Format { significand: 23, exponent: 8 };
pub(super) const F16: Format = Format { significand: 10, exponent: 5 };
pub(super) const BF16: Format = Format { significand: 7, exponent: 8 };

impl Format {
    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.significand
    }

    /// A card answers with this one: all bits set but the sign.
    pub(super) fn nan(self) -> u64 {
        (1 << (self.significand + self.exponent)) - 1
    }

    fn sign(self) -> u64 {
        1 << (self.significand + self.exponent)
    }

    /// The number that bits stand for, exactly.
    pub(super) fn value(self, bits: u64) -> f64 {
        let sign = if bits & self.sign() == 0 { 1.0 } else { -1.0 };
        let bits = bits & (self.sign() - 1);
        let (exponent, fraction) = ((bits >> self.significand) as i32, (bits & ((1 << self.significand) - 1)) as f64);
        let bias = (1 << (self.exponent - 1)) - 1;
        let step = |e: i32| 2f64.powi(e - bias - self.significand as i32);
        sign * if bits > self.infinity() {
            f64::NAN
        } else if bits == self.infinity() {
            f64::INFINITY
        } else if exponent == 0 {
            fraction * step(1)
        } else {
            (fraction + (1u64 << self.significand) as f64) * step(exponent)
        }
    }

    /// Rounds a number that is exact, or whose last bit is set where something is missing below it (see [`odd`]).
    pub(super) fn round(self, x: f64, round: Round) -> u64 {
        if x.is_nan() {
            return self.nan();
        }
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        if x.is_infinite() {
            return sign | self.infinity();
        }
        if x == 0.0 {
            return sign;
        }
        let bits = x.abs().to_bits();
        let exponent = (bits >> 52) as i32 - 1023;
        let significand = bits & ((1 << 52) - 1) | if exponent > -1023 { 1 << 52 } else { 0 };
        let bias = (1 << (self.exponent - 1)) - 1;
        // Bits below the last one that the format keeps; a number below the normal ones loses more.
        let drop = (52 - self.significand as i32 + (1 - bias - exponent).max(0)).min(63) as u32;
        let kept = significand.checked_shr(drop).unwrap_or(0);
        let (left, half) = (significand & ((1 << drop) - 1), 1u64 << (drop - 1));
        let up = match round {
            Round::Nearest => left > half || (left == half && kept & 1 == 1),
            Round::Zero => false,
            Round::Down => sign != 0 && left > 0,
            Round::Up => sign == 0 && left > 0,
        };
        let normal = u64::from((exponent + bias).max(1) as u32 - 1) << self.significand;
        // A carry out of the significand goes into the exponent, as it should.
        let out = normal + kept + u64::from(up);
        if out < self.infinity() && exponent <= bias {
            return sign | out;
        }
        let to_infinity = match round {
            Round::Nearest => true,
            Round::Zero => false,
            Round::Down => sign != 0,
            Round::Up => sign == 0,
        };
        sign | if to_infinity { self.infinity() } else { self.infinity() - 1 }
    }
}

/// `x` plus something too small to be seen in it, of which only the sign is asked: rounded toward zero, with the last
/// bit set. Rounding that to a format of fewer bits is rounding the exact number.
pub(super) fn odd(x: f64, rest: f64) -> f64 {
    if rest == 0.0 || rest.is_nan() || !x.is_finite() {
        return x;
    }
    let inward = (rest > 0.0) != (x > 0.0);
    f64::from_bits((x.to_bits() - u64::from(inward)) | 1)
}

/// a + b for [`Format::round`]. A sum of opposite numbers is -0 where rounding goes down.
pub(super) fn sum(a: f64, b: f64, round: Round) -> f64 {
    let high = a + b;
    if high == 0.0 && round == Round::Down && a.to_bits() != b.to_bits() {
        return -0.0;
    }
    let of_b = high - a;
    odd(high, (a - (high - of_b)) + (b - of_b))
}

/// a / b for [`Format::round`], where a and b have at most 26 bits.
pub(super) fn quotient(a: f64, b: f64) -> f64 {
    let high = a / b;
    odd(high, (-high).mul_add(b, a) * b.signum())
}

/// The square root for [`Format::round`].
pub(super) fn root(x: f64) -> f64 {
    let high = x.sqrt();
    odd(high, (-high).mul_add(high, x))
}
