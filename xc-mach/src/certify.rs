//! Which labels an assignment cannot distinguish.

use crate::assign::Assignment;
use xc_sparse::rank::LabelId;

/// The labels that share their buckets with another label in all repetitions, grouped by their buckets.
///
/// The members of a group have equal scores for every query and every decoder; they are ordered by id.
///
/// *Cost*: R passes over the labels that are still undecided, each with a sort; 16 bytes per label.
pub fn indistinguishable_labels(assignment: &Assignment) -> Vec<Vec<LabelId>> {
    // Groups are refined one repetition at a time: the key is the group so far and the bucket.
    let mut undecided: Vec<(u64, LabelId)> = (0..assignment.n_labels() as u32).map(|label| (0, label)).collect();
    let mut groups = Vec::new();
    for position in 0..assignment.n_repetitions() {
        for (key, label) in &mut undecided {
            *key = *key << 32 | u64::from(assignment.bucket(position, *label));
        }
        undecided.sort_unstable();
        groups.clear();
        let mut kept = Vec::new();
        for group in undecided.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
            let number = groups.len() as u64;
            kept.extend(group.iter().map(|&(_, label)| (number, label)));
            groups.push(group.iter().map(|&(_, label)| label).collect());
        }
        undecided = kept;
    }
    groups
}

/// Expected number of pairs of labels that share their buckets in all repetitions, over seeds:
/// L (L - 1) / 2 c^R, where c is the collision probability of the family.
pub fn expected_indistinguishable_pairs(assignment: &Assignment) -> f64 {
    let n_labels = assignment.n_labels() as f64;
    // Parameters of an assignment were checked when it was made.
    let collision = assignment.params().collision_probability().unwrap_or(1.0);
    n_labels * (n_labels - 1.0).max(0.0) / 2.0 * collision.powi(assignment.n_repetitions() as i32)
}
