// What hnswlib_filter.cpp and usearch_filter.cpp share: .npy files, a bitmap of rows, and the sweep over efforts.
//
//   PROGRAM build BASE.npy INDEX
//   PROGRAM search INDEX QUERY.npy PASS.npy TRUTH.npy ENOUGH RUNS SECONDS EFFORT...
//
// `search` asks for as many answers as TRUTH has columns, on one thread, among the rows whose byte in PASS is not 0. It prints
// a line of JSON for each effort and stops where ENOUGH of the truth is found, or after SECONDS of searching.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

constexpr std::size_t M = 16, EF_CONSTRUCTION = 200, THREADS = 2;

[[noreturn]] inline void fail(const std::string& why) { throw std::runtime_error(why); }

template <typename T> struct Npy {
    std::size_t rows = 0, columns = 1;
    std::vector<T> values;

    const T* row(std::size_t i) const { return values.data() + i * columns; }

    Npy(const std::string& path, const char* type) {
        std::ifstream file(path, std::ios::binary);
        char start[10];
        if (!file.read(start, 10) || std::memcmp(start, "\x93NUMPY\x01", 7)) fail(path + ": no .npy of version 1");
        std::string header(static_cast<unsigned char>(start[8]) + 256 * static_cast<unsigned char>(start[9]), ' ');
        file.read(&header[0], header.size());
        const auto says = [&](const std::string& text) { return header.find(text) != std::string::npos; };
        if (!says("'" + std::string(type) + "'") || !says("'fortran_order': False")) fail(path + ": wanted " + type + " in C order");
        const char* shape = std::strchr(std::strstr(header.c_str(), "'shape'"), '(') + 1;
        char* end;
        rows = std::strtoull(shape, &end, 10);
        if (*end == ',' && end[1] == ' ') columns = std::strtoull(end + 2, nullptr, 10);
        values.resize(rows * columns);
        if (!file.read(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T))) fail(path + ": too short");
    }
};

struct Bitmap {
    std::vector<std::uint64_t> words;

    explicit Bitmap(const Npy<std::uint8_t>& pass) : words(pass.rows / 64 + 1) {
        for (std::size_t i = 0; i < pass.rows; i++) words[i / 64] |= std::uint64_t(pass.values[i] != 0) << (i % 64);
    }
    bool has(std::size_t row) const { return words[row / 64] >> (row % 64) & 1; }
};

// Calls `add(row, thread)` for all rows.
template <typename Add> void on_threads(std::size_t rows, Add add) {
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < THREADS; thread++)
        threads.emplace_back([=] {
            for (std::size_t row = thread; row < rows; row += THREADS) add(row, thread);
        });
    for (auto& thread : threads) thread.join();
}

// `set(effort)`, then `ask(query, k, answers)` for each query, which gives the number of answers.
template <typename Set, typename Ask> void sweep(int argc, char** argv, const Npy<float>& query, Set set, Ask ask) {
    const Npy<std::int64_t> truth(argv[5], "<i8");
    const double enough = std::atof(argv[6]);
    const int runs = std::atoi(argv[7]);
    const double seconds = std::atof(argv[8]);
    double total = 0;
    const std::size_t k = truth.columns;
    std::vector<std::int64_t> answers(query.rows * k);
    std::vector<std::size_t> n(query.rows);
    for (int at = 9; at < argc && total < seconds; at++) {
        set(std::atoi(argv[at]));
        double best = 1e30, spent = 0;
        for (int run = 0; run < runs && spent < 5; run++) {
            const auto begin = std::chrono::steady_clock::now();
            for (std::size_t i = 0; i < query.rows; i++) n[i] = ask(query.row(i), k, answers.data() + i * k);
            const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            best = std::min(best, took);
            spent += took;
        }
        total += spent;
        std::size_t hits = 0;
        for (std::size_t i = 0; i < query.rows; i++)
            for (std::size_t j = 0; j < n[i]; j++) hits += std::count(truth.row(i), truth.row(i) + k, answers[i * k + j]);
        const double recall = double(hits) / truth.values.size();
        std::printf("{\"effort\": %s, \"recall\": %.6f, \"qps\": %.1f}\n", argv[at], recall, query.rows / best);
        std::fflush(stdout);
        if (recall >= enough) break;
    }
}

inline int usage(const char* program) {
    std::fprintf(stderr, "%s build BASE.npy INDEX\n%s search INDEX QUERY.npy PASS.npy TRUTH.npy ENOUGH RUNS SECONDS EFFORT...\n",
                 program, program);
    return 2;
}
