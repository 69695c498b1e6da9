// Filtered search with hnswlib's header: see filter_sweep.hpp.
#include "filter_sweep.hpp"
#include <hnswlib/hnswlib.h>

struct Passing : hnswlib::BaseFilterFunctor {
    Bitmap rows;

    explicit Passing(const Npy<std::uint8_t>& pass) : rows(pass) {}
    bool operator()(hnswlib::labeltype row) override { return rows.has(row); }
};

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "build" && argc == 4) {
        const Npy<float> base(argv[2], "<f4");
        hnswlib::L2Space space(base.columns);
        hnswlib::HierarchicalNSW<float> index(&space, base.rows, M, EF_CONSTRUCTION, 1);
        index.addPoint(base.row(0), 0);
        on_threads(base.rows - 1, [&](std::size_t i, std::size_t) { index.addPoint(base.row(i + 1), i + 1); });
        index.saveIndex(argv[3]);
        return 0;
    }
    if (what != "search" || argc < 10) return usage(argv[0]);
    const Npy<float> query(argv[3], "<f4");
    hnswlib::L2Space space(query.columns);
    hnswlib::HierarchicalNSW<float> index(&space, argv[2]);
    Passing passing(Npy<std::uint8_t>(argv[4], "|u1"));
    sweep(
        argc, argv, query, [&](int effort) { index.setEf(effort); },
        [&](const float* row, std::size_t k, std::int64_t* answers) {
            auto found = index.searchKnn(row, k, &passing);
            const std::size_t n = found.size();
            for (; !found.empty(); found.pop()) *answers++ = found.top().second;
            return n;
        });
}
