//! The examples that teach are run: each says itself whether it learned.

#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_encoder.rs"]
mod custom_encoder;
#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_loop.rs"]
mod custom_loop;
#[expect(unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/custom_sampler.rs"]
mod custom_sampler;
#[expect(dead_code, unreachable_pub, reason = "an example has its main at the root")]
#[path = "../../examples/sampler_distributions.rs"]
mod sampler_distributions;

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
fn a_network_that_learns_leaves_the_uniform_distribution_and_tables_follow_it() {
    let study = sampler_distributions::Study { steps: 40, ..sampler_distributions::Study::made_up().unwrap() };
    for by_tables in [true, false] {
        let mut lines = Vec::new();
        sampler_distributions::Study { by_tables, data: study.data.clone(), ..study }
            .run(|line| lines.push(line))
            .unwrap();
        let at = |step: usize, kind: &str, name: &str| lines[step][kind][name].as_f64().unwrap();
        assert_eq!((lines.len(), lines[20]["step"].as_u64()), (21, Some(40)));
        assert!(at(0, "variation", "uniform") < 0.2 && at(20, "variation", "uniform") > 0.6, "{by_tables}: {lines:?}");
        assert!(at(20, "likeliest", "closed") > 2.0 * at(0, "likeliest", "closed"), "{by_tables}: {lines:?}");
        let with_points = lines.iter().filter(|line| !line["points"].as_array().unwrap().is_empty());
        assert_eq!(with_points.map(|line| line["step"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 20, 40]);
    }
}
