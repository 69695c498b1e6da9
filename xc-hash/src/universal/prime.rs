//! Prime numbers of up to 64 bits, by a test without error.

/// Witnesses that together betray every composite number below 2^64 (3.3e24 in fact).
const WITNESSES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

fn multiply(a: u64, b: u64, modulus: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64
}

fn power(mut base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, base, modulus);
        }
        base = multiply(base, base, modulus);
        exponent >>= 1;
    }
    result
}

/// Whether `n` is prime: Miller-Rabin with the first twelve primes as witnesses, which is exact for
/// 64 bits (`[sorenson2017strong]`).
///
/// *Cost*: at most twelve powers modulo `n`, some microseconds.
pub fn is_prime(n: u64) -> bool {
    if n < 2 {
        return false;
    }
    for p in WITNESSES {
        if n.is_multiple_of(p) {
            return n == p;
        }
    }
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    WITNESSES.iter().all(|&witness| {
        let mut x = power(witness, odd, n);
        if x == 1 || x == n - 1 {
            return true;
        }
        for _ in 1..twos {
            x = multiply(x, x, n);
            if x == n - 1 {
                return true;
            }
        }
        false
    })
}

/// The smallest prime that is at least `from`.
///
/// # Panics
/// If `from` exceeds 18446744073709551557, the largest prime of 64 bits.
pub fn smallest_prime_from(from: u64) -> u64 {
    const LARGEST: u64 = 18_446_744_073_709_551_557;
    assert!(from <= LARGEST, "no prime of 64 bits from {from} on, the largest is {LARGEST}");
    let mut n = from;
    while !is_prime(n) {
        n += 1;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_agree_with_a_sieve() {
        const N: usize = 200_000;
        let mut composite = vec![false; N];
        for p in 2..N {
            if !composite[p] {
                (p * p..N).step_by(p).for_each(|m| composite[m] = true);
            }
        }
        for n in 0..N {
            assert_eq!(is_prime(n as u64), n >= 2 && !composite[n], "{n}");
        }
    }

    #[test]
    fn large_primes_and_pseudoprimes_are_told_apart() {
        for prime in [4_294_967_291, 4_294_967_311, (1 << 61) - 1, 18_446_744_073_709_551_557] {
            assert!(is_prime(prime), "{prime}");
        }
        // Strong pseudoprimes to the first 4, 6, 7, 9 and 11 prime bases; a Carmichael number; a
        // square of a prime.
        for composite in [
            3_215_031_751,
            3_474_749_660_383,
            341_550_071_728_321,
            3_825_123_056_546_413_051,
            18_446_744_073_709_551_555,
            561,
            4_294_967_291 * 4_294_967_291,
            (1 << 61) + 1,
        ] {
            assert!(!is_prime(composite), "{composite}");
        }
    }

    #[test]
    fn the_next_prime_is_found() {
        for (from, prime) in
            [(0, 2), (1, 2), (2, 2), (3, 3), (4, 5), (90, 97), (20_000, 20_011), (50_000_000, 50_000_017)]
        {
            assert_eq!(smallest_prime_from(from), prime);
        }
    }
}
