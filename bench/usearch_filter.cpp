// Filtered search with usearch's header: see filter_sweep.hpp.
#include "filter_sweep.hpp"
#include <usearch/index_dense.hpp>

using namespace unum::usearch;

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "build" && argc == 4) {
        const Npy<float> base(argv[2], "<f4");
        const metric_punned_t metric(base.columns, metric_kind_t::l2sq_k, scalar_kind_t::f32_k);
        auto made = index_dense_t::make(metric, index_dense_config_t(M, EF_CONSTRUCTION, 64));
        if (!made || !made.index.try_reserve(index_limits_t(base.rows, THREADS))) fail("no index");
        on_threads(base.rows, [&](std::size_t i, std::size_t thread) {
            if (!made.index.add(i, base.row(i), thread)) fail("a row was not added");
        });
        if (!made.index.save(argv[3])) fail("the index was not saved");
        std::fprintf(stderr, "kernels: %s\n", metric.isa_name());
        return 0;
    }
    if (what != "search" || argc < 10) return usage(argv[0]);
    const Npy<float> query(argv[3], "<f4");
    auto made = index_dense_t::make(argv[2]);
    if (!made || !made.index.try_reserve(index_limits_t(made.index.size(), 1))) fail("no index");
    const Bitmap passing(Npy<std::uint8_t>(argv[4], "|u1"));
    sweep(
        argc, argv, query, [&](int effort) { made.index.change_expansion_search(effort); },
        [&](const float* row, std::size_t k, std::int64_t* answers) {
            const auto pass = [&](index_dense_t::vector_key_t key) { return passing.has(key); };
            const auto found = made.index.filtered_search(row, k, pass, 0);
            for (std::size_t i = 0; i < found.size(); i++) answers[i] = found[i].member.key;
            return found.size();
        });
}
