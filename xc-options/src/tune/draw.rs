//! New settings: at random, or near good ones.

use super::space::{Scale, Settings, Space};
use xc_hash::stream::Stream;

/// Any settings; each keeps its default in half of the draws.
pub(super) fn anywhere(space: &Space, stream: &mut Stream) -> Settings {
    let mut settings = space.default_settings();
    for (value, choice) in settings.values_mut().iter_mut().zip(space.choices()) {
        if stream.below(2) == 1 {
            *value = stream.below(choice.values().len() as u32) as usize;
        }
    }
    settings
}

/// Settings near those of `good`: one of them, or two mixed, with one change or a few.
pub(super) fn near(space: &Space, good: &[&Settings], stream: &mut Stream) -> Settings {
    let mut pick = || good[stream.below(good.len() as u32) as usize];
    let (first, second) = (pick(), pick());
    let mixes = stream.below(3) == 0;
    let mut settings = first.clone();
    for (value, &other) in settings.values_mut().iter_mut().zip(second.values()) {
        if mixes && stream.below(2) == 1 {
            *value = other;
        }
    }
    let n = space.choices().len() as u32;
    let certain = stream.below(n);
    for at in 0..n {
        // Another one in every second draw, on average.
        if at == certain || stream.below(2 * n) == 0 {
            change(space, at as usize, &mut settings, stream);
        }
    }
    settings
}

/// Moves one value: mostly to a neighbour where values have an order.
fn change(space: &Space, at: usize, settings: &mut Settings, stream: &mut Stream) {
    let choice = &space.choices()[at];
    let (last, value) = (choice.values().len() - 1, &mut settings.values_mut()[at]);
    if last == 0 {
        return;
    }
    if choice.scale() == Scale::Ordered && stream.below(4) > 0 {
        let up = stream.below(2) == 1;
        *value = match *value {
            0 => 1,
            here if here == last => last - 1,
            here if up => here + 1,
            here => here - 1,
        };
    } else {
        // Any other value.
        let other = stream.below(last as u32) as usize;
        *value = if other >= *value { other + 1 } else { other };
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::Choice;
    use super::*;
    use proptest::prelude::*;

    fn space(sizes: &[usize]) -> Space {
        let names = ["0", "1", "2", "3", "4"];
        let choices = sizes.iter().enumerate().map(|(at, &n)| {
            let scale = if at % 2 == 0 { Scale::Ordered } else { Scale::Named };
            Choice::new(&at.to_string(), &names[..n], n / 2, scale)
        });
        Space::new(choices.collect())
    }

    proptest! {
        #[test]
        fn draws_are_settings_of_the_space_and_near_ones_differ(
            sizes in prop::collection::vec(2usize..6, 1..8), name: u64,
        ) {
            let space = space(&sizes);
            let mut stream = Stream::new(name);
            let any = anywhere(&space, &mut stream);
            prop_assert!(space.contains(&any));
            let one = near(&space, &[&any], &mut stream);
            prop_assert!(space.contains(&one) && one != any);
            let mixed = near(&space, &[&any, &space.default_settings()], &mut stream);
            prop_assert!(space.contains(&mixed));
        }
    }
}
