// Times the hashing of public SLIDE, or of Intel's version of it, on made-up rows: one JSON line a case.
// Compiled by lsh_peers.py together with that code; CPU time of one thread, the least of nine runs.
#include "DensifiedWtaHash.h"
#include "srp.h"
#include <ctime>
#include <functional>
#include <random>
#include <set>

static const int ROWS = 500, K = 6, L = 400, SIM_K = 9, SIM_L = 50;

static double cpu_ns() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void report(const char* name, int width, int hashes, const std::function<void(int)>& row) {
    double best = 1e300;
    for (int run = 0; run < 9; run++) {
        double begin = cpu_ns();
        for (int i = 0; i < ROWS; i++) row(i);
        best = std::min(best, (cpu_ns() - begin) / ROWS);
    }
    printf("{\"program\": \"%s\", \"case\": \"%s\", \"width\": %d, \"hashes\": %d, \"ns_per_row\": %.0f}\n", PROGRAM, name,
           width, hashes, best);
}

int main() {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> unit(0.01f, 1.0f);
    for (int width : {128, 768}) {
        std::vector<float> rows(size_t(ROWS) * width);
        for (float& v : rows) v = unit(random);
        DensifiedWtaHash wta(K * L, width);
        report("wta", width, K * L, [&](int i) { delete[] wta.getHashEasy(&rows[size_t(i) * width], width, 30); });
        SparseRandomProjection projection(width, SIM_K * SIM_L, 3);
        report("sim-hash", width, SIM_K * SIM_L,
               [&](int i) { delete[] projection.getHash(&rows[size_t(i) * width], width); });
    }
    const int width = 500000, nnz = 75;
    std::vector<int> indices;
    std::vector<float> values;
    for (int i = 0; i < ROWS; i++) {
        std::set<int> features;
        while (int(features.size()) < nnz) features.insert(int(random() % width));
        indices.insert(indices.end(), features.begin(), features.end());
        for (int j = 0; j < nnz; j++) values.push_back(unit(random));
    }
    DensifiedWtaHash dwta(K * L, width);
    report("dwta of 75 features", width, K * L,
           [&](int i) { delete[] dwta.getHash(&indices[i * nnz], &values[i * nnz], nnz); });
}
