//! The products of a sparse output layer on vectors of any width: see the parent module.
//!
//! The file of an instruction set defines the vector type (`V`, of `WIDTH` numbers; `N` vectors hold
//! sixteen) and its operations; the rest is here, compiled for its features.

macro_rules! products {
    ($features:literal) => {
        /// The two halves of a line, widened.
        #[inline]
        #[target_feature(enable = $features)]
        fn widen(line: &UniformLine) -> [[V; N]; 2] {
            let mut out = [[zero(); N]; 2];
            for n in 0..N {
                // SAFETY: a line has sixteen words, of which these are one vector's.
                [out[0][n], out[1][n]] = unsafe { halves(line.0.as_ptr().add(n * WIDTH)) };
            }
            out
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn load(values: &[f32; 16]) -> [V; N] {
            let mut out = [zero(); N];
            for n in 0..N {
                // SAFETY: sixteen numbers, of which these are one vector's.
                out[n] = unsafe { load_one(values.as_ptr().add(n * WIDTH)) };
            }
            out
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn store(values: &mut [f32; 16], from: [V; N]) {
            for n in 0..N {
                // SAFETY: sixteen numbers, of which these are one vector's.
                unsafe { store_one(values.as_mut_ptr().add(n * WIDTH), from[n]) };
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn add_product(sums: &mut [V; N], a: &[V; N], b: &[V; N]) {
            for n in 0..N {
                sums[n] = sum(sums[n], product(a[n], b[n]));
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn add_fused(sums: &mut [V; N], a: &[V; N], b: &[V; N]) {
            for n in 0..N {
                sums[n] = fused(a[n], b[n], sums[n]);
            }
        }

        /// # Safety
        /// The machine has the instructions; the input is below `lines.len()`.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn add_line<I: IndexWidth>(sums: &mut [[V; N]; 2], lines: &[UniformLine], input: I, weight: f32) {
            // SAFETY: in range, by the contract.
            let values = widen(unsafe { lines.get_unchecked(input.at()) });
            let weight = [all(weight); N];
            for half in 0..2 {
                add_fused(&mut sums[half], &values[half], &weight);
            }
        }

        /// Sums over a label's connections.
        ///
        /// # Safety
        /// The machine has the instructions; every input is below `lines.len()`; there are as many
        /// weights as inputs.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn sums<I: IndexWidth>(lines: &[UniformLine], inputs: &[I], weights: &[f32], ahead: &[I]) -> [[V; N]; 2] {
            let soon = ahead.len().min(inputs.len());
            for input in &ahead[..soon] {
                _mm_prefetch::<_MM_HINT_T1>(lines.as_ptr().wrapping_add(input.at()).cast());
            }
            let (mut even, mut odd) = ([[zero(); N]; 2], [[zero(); N]; 2]);
            for t in (0..inputs.len()).step_by(2) {
                // SAFETY: t < inputs.len() = weights.len(), and the input is in range, by the
                // contract.
                unsafe { add_line(&mut even, lines, *inputs.get_unchecked(t), *weights.get_unchecked(t)) };
                if t + 1 < inputs.len() {
                    // SAFETY: so is t + 1.
                    unsafe { add_line(&mut odd, lines, *inputs.get_unchecked(t + 1), *weights.get_unchecked(t + 1)) };
                }
            }
            for half in 0..2 {
                for n in 0..N {
                    even[half][n] = sum(even[half][n], odd[half][n]);
                }
            }
            even
        }

        /// # Safety
        /// The machine has the instructions; every input is below `lines.len()`; there are as many
        /// weights as inputs.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn forward<I: IndexWidth>(
            lines: &[UniformLine],
            inputs: &[I],
            weights: &[f32],
            ahead: &[I],
            out: &mut Sums,
        ) {
            // SAFETY: the same contract.
            let sums = unsafe { sums(lines, inputs, weights, ahead) };
            for half in 0..2 {
                store(&mut out[half], sums[half]);
            }
        }

        /// Adds the bias; the lanes above the bar, and the sums if there are any.
        #[inline]
        #[target_feature(enable = $features)]
        fn above(mut sums: [[V; N]; 2], bias: f32, bar: f32, out: &mut Sums) -> u32 {
            let (bias, bar) = (all(bias), all(bar));
            let mut above = 0u32;
            for half in 0..2 {
                for n in 0..N {
                    sums[half][n] = sum(sums[half][n], bias);
                    let lanes = not_below(sums[half][n], bar);
                    above |= lanes << (half * 16 + n * WIDTH);
                }
            }
            if above != 0 {
                for half in 0..2 {
                    store(&mut out[half], sums[half]);
                }
            }
            above
        }

        /// # Safety
        /// As for [`forward`].
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn forward_above<I: IndexWidth>(
            lines: &[UniformLine],
            inputs: &[I],
            weights: &[f32],
            ahead: &[I],
            bias: f32,
            bar: f32,
            out: &mut Sums,
        ) -> u32 {
            // SAFETY: the same contract.
            above(unsafe { sums(lines, inputs, weights, ahead) }, bias, bar, out)
        }

        /// Two blocks of instances at once: indices and weights are read once for both.
        ///
        /// # Safety
        /// As for [`forward`], for each of the blocks.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn forward_above_two<I: IndexWidth>(
            lines: [&[UniformLine]; 2],
            inputs: &[I],
            weights: &[f32],
            ahead: &[I],
            [bias, bar]: [f32; 2],
            out: [&mut Sums; 2],
        ) -> [u32; 2] {
            let soon = ahead.len().min(inputs.len());
            for input in &ahead[..soon] {
                _mm_prefetch::<_MM_HINT_T1>(lines[0].as_ptr().wrapping_add(input.at()).cast());
                _mm_prefetch::<_MM_HINT_T1>(lines[1].as_ptr().wrapping_add(input.at()).cast());
            }
            let mut sums = [[[[zero(); N]; 2]; 2]; 2];
            for t in (0..inputs.len()).step_by(2) {
                // SAFETY: t < inputs.len() = weights.len(), and the input is in range of both, by
                // the contract.
                unsafe {
                    let (input, weight) = (*inputs.get_unchecked(t), *weights.get_unchecked(t));
                    add_line(&mut sums[0][0], lines[0], input, weight);
                    add_line(&mut sums[1][0], lines[1], input, weight);
                }
                if t + 1 < inputs.len() {
                    // SAFETY: so is t + 1.
                    unsafe {
                        let (input, weight) = (*inputs.get_unchecked(t + 1), *weights.get_unchecked(t + 1));
                        add_line(&mut sums[0][1], lines[0], input, weight);
                        add_line(&mut sums[1][1], lines[1], input, weight);
                    }
                }
            }
            for [even, odd] in &mut sums {
                for half in 0..2 {
                    for n in 0..N {
                        even[half][n] = sum(even[half][n], odd[half][n]);
                    }
                }
            }
            let [a, b] = out;
            [above(sums[0][0], bias, bar, a), above(sums[1][0], bias, bar, b)]
        }

        /// # Safety
        /// As for [`forward`], with `out` in place of the lines.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn input_gradient<I: IndexWidth>(
            out: &mut [Sums],
            inputs: &[I],
            weights: &[f32],
            gradient: &Sums,
        ) {
            let gradient = [load(&gradient[0]), load(&gradient[1])];
            for t in 0..inputs.len() {
                let (out, weight) =
                    // SAFETY: t < inputs.len() = weights.len(), and the input is in range, by the
                    // contract.
                    unsafe { (out.get_unchecked_mut(inputs.get_unchecked(t).at()), *weights.get_unchecked(t)) };
                let weight = [all(weight); N];
                for half in 0..2 {
                    let mut sums = load(&out[half]);
                    add_product(&mut sums, &gradient[half], &weight);
                    store(&mut out[half], sums);
                }
            }
        }

        /// # Safety
        /// As for [`forward`], with `sums` in place of the weights.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn weight_gradient<I: IndexWidth>(
            sums: &mut [[f32; 16]],
            lines: &[UniformLine],
            inputs: &[I],
            gradient: &Sums,
        ) {
            let gradient = [load(&gradient[0]), load(&gradient[1])];
            for t in 0..inputs.len() {
                let (line, sums) =
                    // SAFETY: t < inputs.len() = sums.len(), and the input is in range, by the
                    // contract.
                    unsafe { (lines.get_unchecked(inputs.get_unchecked(t).at()), sums.get_unchecked_mut(t)) };
                let values = widen(line);
                let mut part = load(sums);
                for half in 0..2 {
                    add_product(&mut part, &values[half], &gradient[half]);
                }
                store(sums, part);
            }
        }
    };
}

pub(super) use products;
