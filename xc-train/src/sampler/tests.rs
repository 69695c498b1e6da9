use super::*;

fn queries(values: &[f32]) -> Queries<'_> {
    Queries { instances: &[0], vectors: DenseRows::new(values, 1), targets: Targets::new(&[0], &[0, 0], &[]) }
}

/// How often each label comes in so many steps of one draw.
fn counted(sampler: &dyn Sampler, n_labels: u32, steps: u64) -> Vec<u64> {
    let (mut counts, mut out) = (vec![0u64; n_labels as usize], Candidates::default());
    for number in 0..steps {
        out.clear();
        let at = Step { number, epoch: 0, seed: 3 };
        sampler.sample(at, queries(&[0.5]), None, 0..n_labels, &mut out).unwrap();
        assert_eq!((out.len(), out.list(0).labels.len()), (1, 1));
        counts[out.list(0).labels[0] as usize] += 1;
    }
    counts
}

/// Chi-square of counts against chances, and its degrees of freedom.
fn chi_square(counts: &[u64], chances: &[f64]) -> (f64, f64) {
    let n = counts.iter().sum::<u64>() as f64;
    let parts = counts.iter().zip(chances).filter(|(_, q)| **q > 0.0);
    let sum = parts.clone().map(|(&count, q)| (count as f64 - n * q).powi(2) / (n * q)).sum();
    (sum, parts.count() as f64 - 1.0)
}

#[test]
fn labels_come_as_often_as_their_chances_say() {
    const STEPS: u64 = 1_000_000;
    let counts: Vec<u32> = (0..100u32).map(|label| if label % 7 == 3 { 0 } else { 1 + label * label }).collect();
    for power in [0.0, 0.5, 1.0] {
        let weight = |&count: &u32| if count == 0 { 0.0 } else { f64::from(count).powf(power) };
        let total: f64 = counts.iter().map(weight).sum();
        let chances: Vec<f64> = counts.iter().map(|count| weight(count) / total).collect();
        let sampler = FrequencyNegatives::new(&counts, power, 1).unwrap();
        let got = counted(&sampler, 100, STEPS);
        assert!(got.iter().zip(&counts).all(|(got, &count)| count > 0 || *got == 0), "a label that is never true came");
        let (sum, free) = chi_square(&got, &chances);
        // Five standard deviations above the mean of chi-square.
        assert!(sum < free + 5.0 * (2.0 * free).sqrt(), "power {power}: {sum} for {free} degrees");
    }
    let (sum, free) = chi_square(&counted(&UniformNegatives { per_step: 1 }, 100, STEPS), &[0.01; 100]);
    assert!(sum < free + 5.0 * (2.0 * free).sqrt(), "{sum} for {free} degrees");
}

#[test]
fn log_q_is_the_chance_of_being_in_the_list() {
    let counts = [50u32, 20, 10, 5, 5, 5, 3, 2];
    let samplers: [Box<dyn Sampler>; 2] =
        [Box::new(UniformNegatives { per_step: 4 }), Box::new(FrequencyNegatives::new(&counts, 1.0, 4).unwrap())];
    for sampler in samplers {
        let (mut hits, mut log_q, mut out) = ([0u32; 8], [0.0f32; 8], Candidates::default());
        for number in 0..100_000 {
            out.clear();
            let at = Step { number, epoch: 0, seed: 3 };
            sampler.sample(at, queries(&[0.5]), None, 0..8, &mut out).unwrap();
            let list = out.list(0);
            for (&label, &log) in list.labels.iter().zip(list.log_q) {
                hits[label as usize] += 1;
                log_q[label as usize] = log;
            }
            assert!(list.weight.iter().all(|&weight| weight == 1.0));
        }
        let (mut all, labels) = (vec![1.0; 3], [0, 1, 2, 3, 4, 5, 6, 7]);
        sampler.log_q(Step::default(), queries(&[0.5]), None, 0..8, 0, &labels, &mut all).unwrap();
        assert!(sampler.knows_log_q() && all == log_q, "{all:?}, in lists {log_q:?}");
        for (hits, log) in hits.iter().zip(log_q) {
            let (got, chance) = (f64::from(*hits) / 1e5, f64::from(log.exp()));
            assert!((got - chance).abs() < 5.0 * (chance / 1e5).sqrt(), "{sampler:?}: {got}, expected {chance}");
        }
    }
}

#[test]
fn a_step_has_one_list_and_other_steps_have_others() {
    let sampler = UniformNegatives { per_step: 20 };
    let list = |number, seed, labels: Range<u32>| {
        let mut out = Candidates::default();
        sampler.sample(Step { number, epoch: 0, seed }, queries(&[0.5]), None, labels, &mut out).unwrap();
        out.list(0).labels.to_vec()
    };
    let first = list(1, 2, 0..1000);
    assert_eq!(first, list(1, 2, 0..1000));
    assert_ne!(first, list(2, 2, 0..1000));
    assert_ne!(first, list(1, 3, 0..1000));
    // Labels keep their global numbers.
    let shifted: Vec<u32> = first.iter().map(|label| label + 500).collect();
    assert_eq!(list(1, 2, 500..1500), shifted);
    assert!(list(1, 2, 7..7).is_empty());
}

#[test]
fn impossible_distributions_are_refused() {
    assert_eq!(FrequencyNegatives::new(&[0, 0], 1.0, 3), Err(FrequencyError::NoLabel { n_labels: 2 }));
    assert!(FrequencyNegatives::new(&[1], f64::NAN, 3).unwrap_err().to_string().contains("power NaN"));
    assert!(FrequencyNegatives::new(&[1], -1.0, 3).is_err());
}

#[test]
#[should_panic(expected = "label 4 after Some(4)")]
fn a_label_twice_in_a_list_is_refused() {
    let mut out = Candidates::default();
    out.push(4, 1.0, 0.0);
    out.push(4, 1.0, 0.0);
}
