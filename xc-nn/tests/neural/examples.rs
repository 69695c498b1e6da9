//! The examples that teach are run: each says itself whether it learned.

#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_encoder.rs"]
mod custom_encoder;
#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_head.rs"]
mod custom_head;
#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_loop.rs"]
mod custom_loop;
#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_loss.rs"]
mod custom_loss;
#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_sampler.rs"]
mod custom_sampler;

#[test]
fn the_custom_loop_learns() {
    custom_loop::main().unwrap();
}

#[test]
fn the_custom_encoder_learns() {
    custom_encoder::main().unwrap();
}

#[test]
fn the_custom_sampler_learns() {
    custom_sampler::main().unwrap();
}

#[test]
fn the_custom_loss_learns() {
    custom_loss::main().unwrap();
}

#[test]
fn the_custom_head_learns() {
    custom_head::main().unwrap();
}
