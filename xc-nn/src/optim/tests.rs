use super::*;
use crate::{Decay, Parameter};

/// One value under the textbook rules, in f64.
#[derive(Default, Clone, Copy)]
struct Scalar {
    value: f64,
    m: f64,
    v: f64,
}

fn textbook(rule: &str, s: &mut Scalar, g: f64, t: i32, rate: f64, decay: f64) {
    s.value -= rate * decay * s.value;
    match rule {
        "sgd" => s.value -= rate * g,
        "adagrad" => {
            s.v += g * g;
            s.value -= rate * g / (s.v.sqrt() + 1e-10);
        }
        "momentum" => {
            s.m = 0.9 * s.m + g;
            s.value -= rate * s.m;
        }
        _ => {
            s.m = 0.9 * s.m + 0.1 * g;
            s.v = 0.999 * s.v + 0.001 * g * g;
            let (m, v) = (s.m / (1.0 - 0.9f64.powi(t)), s.v / (1.0 - 0.999f64.powi(t)));
            s.value -= rate * m / (v.sqrt() + 1e-8);
        }
    }
}

fn rules() -> Vec<Optimizer> {
    let decays = [0.0, 0.05].into_iter();
    let rules =
        [Optimizer::sgd(), Optimizer::momentum(), Optimizer::adam(), Optimizer::adagrad(), Optimizer::row_adagrad()];
    decays.flat_map(|decay| rules.map(|rule| rule.with_weight_decay(decay))).collect()
}

#[test]
fn every_rule_of_single_values_follows_the_textbook() {
    for optimizer in rules().into_iter().filter(|rule| !rule.moments().by_row) {
        let decay = optimizer.weight_decay();
        let (rows, width) = (3, 37);
        let mut weights = Parameter::zeros(rows, width, Decay::Yes);
        let mut bias = Parameter::zeros(1, width, Decay::No);
        let first = |i: usize| (i as f32 * 0.37).sin();
        weights.values_mut().iter_mut().enumerate().for_each(|(i, v)| *v = first(i));
        bias.values_mut().iter_mut().enumerate().for_each(|(i, v)| *v = first(i));
        weights.prepare(optimizer.moments());
        bias.prepare(optimizer.moments());
        let start = |n: usize| -> Vec<Scalar> {
            (0..n).map(|i| Scalar { value: f64::from(first(i)), ..Default::default() }).collect()
        };
        let (mut expected, mut expected_bias) = (start(rows * width), start(width));
        for t in 0..20u64 {
            let gradient = |i: usize| ((i as f32 + 1.3) * (t as f32 + 0.7)).cos() * 0.8;
            let rate = 0.1 / (t + 1) as f64;
            let step = optimizer.change(t, rate, 0.5);
            // Row 1 is touched in even steps only: lazily, nothing of it moves in the others.
            for row in (0..rows).filter(|&row| row != 1 || t % 2 == 0) {
                let g: Vec<f32> = (row * width..(row + 1) * width).map(gradient).collect();
                weights.rows_mut().rows(row..row + 1).update(&g, &step);
                for i in row * width..(row + 1) * width {
                    textbook(
                        optimizer.name(),
                        &mut expected[i],
                        0.5 * f64::from(gradient(i)),
                        t as i32 + 1,
                        rate,
                        decay,
                    );
                }
            }
            let g: Vec<f32> = (0..width).map(gradient).collect();
            bias.rows_mut().update(&g, &step);
            for i in 0..width {
                textbook(
                    optimizer.name(),
                    &mut expected_bias[i],
                    0.5 * f64::from(gradient(i)),
                    t as i32 + 1,
                    rate,
                    0.0,
                );
            }
        }
        for (got, expected) in weights.values().iter().zip(&expected).chain(bias.values().iter().zip(&expected_bias)) {
            let (got, expected) = (f64::from(*got), expected.value);
            assert!((got - expected).abs() < 3e-6, "{} with decay {decay}: {got} {expected}", optimizer.name());
        }
    }
}

#[test]
fn adagrad_by_rows_divides_by_the_root_of_the_row_s_mean_squares() {
    let rule = Optimizer::row_adagrad().with_weight_decay(0.05);
    for (rows, width) in [(3, 37), (2, 1), (1, 64), (4, 16)] {
        let mut weights = Parameter::zeros(rows, width, Decay::Yes);
        weights.values_mut().iter_mut().enumerate().for_each(|(i, v)| *v = (i as f32 * 0.37).sin());
        weights.prepare(rule.moments());
        assert_eq!(weights.moments[0].len(), rows);
        let mut expected: Vec<f64> = weights.values().iter().map(|&v| f64::from(v)).collect();
        let mut squares = vec![0.0f64; rows];
        for t in 0..12u64 {
            let g: Vec<f32> = (0..rows * width).map(|i| ((i as f32 + 1.3) * (t as f32 + 0.7)).cos() * 0.8).collect();
            // The last row rests in odd steps.
            let n = if t % 2 == 1 { rows - 1 } else { rows };
            weights.rows_mut().rows(0..n).update(&g[..n * width], &rule.change(t, 0.1, 0.5));
            for row in 0..n {
                let range = row * width..(row + 1) * width;
                let g: Vec<f64> = g[range.clone()].iter().map(|&g| 0.5 * f64::from(g)).collect();
                squares[row] += g.iter().map(|g| g * g).sum::<f64>() / width as f64;
                for (value, g) in expected[range].iter_mut().zip(&g) {
                    *value = *value * (1.0 - 0.1 * 0.05) - 0.1 * g / (squares[row].sqrt() + 1e-10);
                }
            }
        }
        for (got, expected) in weights.values().iter().zip(&expected) {
            assert!((f64::from(*got) - expected).abs() < 3e-6, "{rows} x {width}: {got}, expected {expected}");
        }
    }
}

#[test]
fn whole_slots_and_rows_give_the_same_bits() {
    for optimizer in rules() {
        let mut whole = Parameter::zeros(5, 19, Decay::Yes);
        whole.values_mut().iter_mut().enumerate().for_each(|(i, v)| *v = i as f32 / 31.0);
        whole.prepare(optimizer.moments());
        let mut rows = whole.clone();
        for t in 0..4 {
            let g: Vec<f32> = (0..95).map(|i| ((i * 17 + t) % 11) as f32 - 5.0).collect();
            let step = optimizer.change(t as u64, 0.01, 1.0);
            whole.rows_mut().update(&g, &step);
            for row in (0..5).rev() {
                rows.rows_mut().rows(row..row + 1).update(&g[row * 19..][..19], &step);
            }
        }
        assert_eq!(whole.values(), rows.values());
        assert_eq!(whole.moments, rows.moments);
    }
}

#[test]
fn an_optimiser_is_written_and_read_as_its_name_and_settings() {
    for rule in rules() {
        let text = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Optimizer>(&text).unwrap(), rule);
    }
    let text = serde_json::to_string(&Optimizer::momentum()).unwrap();
    assert_eq!(text, r#"{"name":"sgd","momentum":0.9,"weight_decay":0.0}"#);
    let unknown = r#"{"name":"sgd","momentum":0.9,"weight_decay":0.0,"nesterov":true}"#;
    assert!(serde_json::from_str::<Optimizer>(unknown).is_err());
}
