// What two warpgroups did at the same time, from the stamps of shared_pingpong.cuh. Host code.
#pragma once
#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "shared_pingpong.cuh"

// A phase lasts from its point to the next one. In the last phase a warpgroup is in no step: it starts, or ends, a tile of queries.
constexpr int WARPGROUPS = 2, PHASES = POINTS, OUTSIDE = ROUNDED;
constexpr const char* NAMES[PHASES] = {"wait for turn", "issue scores",  "wait for values", "issue values", "wait for scores",
                                       "softmax",       "wait for keys", "wait for sums",   "round",        "outside"};
constexpr Point SOFTMAX = SCORED;

// Products of scores are issued and have not ended: the warpgroup waits for their end, so that is seen at once.
constexpr bool computes_scores(int phase) { return phase >= TAKEN && phase < SCORED; }
// Products of either kind are issued, and nobody has seen their end. Those of values may have ended under the softmax.
constexpr bool may_multiply(int phase) { return phase >= TAKEN && phase < SUMMED; }

struct Stamps {
    std::vector<unsigned long long> all;  // [blocks][WARPGROUPS][most][POINTS]; 0 where nothing was stamped
    int blocks, most;
    const unsigned long long* step(int block, int warpgroup, int i) const {
        return all.data() + ((size_t(block) * WARPGROUPS + warpgroup) * most + i) * POINTS;
    }
    bool has(int block, int warpgroup, int i) const { return step(block, warpgroup, i)[WANTED] > 0; }
};

// [phase of warpgroup 0][phase of warpgroup 1]
template <typename T>
using Together = std::array<std::array<T, PHASES>, PHASES>;

// The time that a block's warpgroups spent in each pair of phases, from the first stamp to the last.
inline Together<unsigned long long> time_together(const Stamps& stamps, int block) {
    struct Change {
        unsigned long long at;
        int warpgroup, phase;
    };
    std::vector<Change> changes;
    for (int warpgroup = 0; warpgroup < WARPGROUPS; warpgroup++) {
        for (int i = 0; i < stamps.most; i++) {
            if (!stamps.has(block, warpgroup, i)) continue;
            for (int point = 0; point < POINTS; point++) changes.push_back({stamps.step(block, warpgroup, i)[point], warpgroup, point});
        }
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
    Together<unsigned long long> time{};
    int now[WARPGROUPS] = {OUTSIDE, OUTSIDE};
    for (size_t i = 0; i < changes.size(); i++) {
        if (i) time[now[0]][now[1]] += changes[i].at - changes[i - 1].at;
        now[changes[i].warpgroup] = changes[i].phase;
    }
    return time;
}

// One launch: shares of all blocks' time, and the time per step of a warpgroup, all else included.
struct Shares {
    Together<double> together;
    double step_ns;
};

inline Shares shares_of(const Stamps& stamps) {
    Together<double> time{};
    double all = 0, steps = 0;
    for (int block = 0; block < stamps.blocks; block++) {
        const auto of_block = time_together(stamps, block);
        for (int a = 0; a < PHASES; a++) {
            for (int b = 0; b < PHASES; b++) {
                time[a][b] += of_block[a][b];
                all += of_block[a][b];
            }
        }
        for (int i = 0; i < stamps.most; i++) steps += stamps.has(block, 0, i);
    }
    for (auto& row : time) {
        for (double& share : row) share /= all;
    }
    return {time, all / steps};
}

// Of the time in which `of(phase)` is true for a warpgroup, the share in which `under(phase)` is true for the other. Both warpgroups count.
template <typename Of, typename Under>
double share_under(const Together<double>& together, Of of, Under under) {
    double all = 0, found = 0;
    for (int a = 0; a < PHASES; a++) {
        for (int b = 0; b < PHASES; b++) {
            all += together[a][b] * (of(a) + of(b));
            found += together[a][b] * ((of(a) && under(b)) + (of(b) && under(a)));
        }
    }
    return all ? found / all : 0;
}

// The smallest difference between two stamps, which is the resolution of the clock. 0 if all are equal.
inline unsigned long long clock_step(const Stamps& stamps) {
    std::vector<unsigned long long> sorted;
    std::copy_if(stamps.all.begin(), stamps.all.end(), std::back_inserter(sorted), [](unsigned long long stamp) { return stamp > 0; });
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    unsigned long long least = 0;
    for (size_t i = 1; i < sorted.size(); i++) least = i == 1 ? sorted[1] - sorted[0] : std::min(least, sorted[i] - sorted[i - 1]);
    return least;
}
