//! The examples run.

#[expect(unreachable_pub, reason = "it is a program of its own")]
#[path = "../../examples/kind_of_your_own.rs"]
mod kind_of_your_own;

#[test]
fn an_encoder_a_head_and_a_sampler_of_ones_own_are_blended_with_a_tree() {
    kind_of_your_own::main().unwrap();
}
